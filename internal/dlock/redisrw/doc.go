// Package redisrw implements a distributed read/write lock on Redis: a reader takes one permit of a semaphore, and a
// writer takes all of them.
//
// # Data
//
// Each key is a semaphore of package redissem with [Readers] permits, below the prefix shop:rwsem:. redissem documents the
// data, the costs, and what a crash leaves behind. Each acquisition and each release is one round trip.
//
// # Why there is no mutex in front
//
// A textbook puts a mutex in front of the permits: two writers that collect permits one by one would wait for each
// other, and readers would pass a writer that collects. This semaphore grants all permits of a caller at once, and
// first come, first served. So its queue is that mutex. A writer that waits stops later readers, and it costs no lease
// more ([semlock.RWMutex]).
//
// # Guarantees
//
//   - A writer is alone, and up to [Readers] readers share a key (MutualExclusion, ReadersShare, OneReaderMoreWaits).
//   - Grants are in the order of arrival, so neither side starves the other (ArrivalOrder, WriterIsNotStarvedByReaders,
//     ReadersAreNotStarvedByWriters).
//   - The fencing token of a writer is greater than that of every earlier holder (WriterGetsNewFence). So a resource
//     that compares tokens refuses a writer whose lease has expired. A reader has a token of its own.
//
// # Not guaranteed
//
//   - Exclusion over a loss of data. The semaphore halts grants for one TTL if a client proves the loss. Otherwise a
//     former holder can consider its lease valid for nine tenths of a TTL, alongside a new writer. If the resource
//     compares fencing tokens, it refuses the former writer.
//   - Reentry. A context that holds a key waits for itself if it acquires the key again.
package redisrw
