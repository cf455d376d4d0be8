// Package identity authenticates requests: it creates API keys and checks them.
//
// # Keys
//
// A key is a text of 72 characters, shop_PREFIX_REST. The prefix names the key in lists, in logs and in the database.
// The rest has 256 random bits, which only the key's holder has, and a checksum over the whole key. So a key that was
// mistyped or cut off is refused without a lookup. The checksum protects from mistakes only, because any caller can
// compute it. Keys are by hand, because libraries authenticate people, and a service that asks for an order is none.
//
// The database has the SHA-256 of the secret. A slow hash with a salt is for passwords, which
// people choose; nobody finds 256 random bits by trying.
//
// # Guarantees
//
//  1. A key is shown once, by [Service.Create]. No error, log line, list or stored row has it
//     or its secret; a [Token] prints without it (TestSecretsAreNotShown).
//  2. Whatever is wrong with a key, the answer is the same [ErrUnauthenticated] with the same
//     text. [RefusedError] has the reason for the log (TestRefusalsLookAlike).
//  3. [Service.Revoke] and a revocation by another process hold everywhere at most [Config.Keep] after the database has
//     them, also for lookups in flight (TestKeyRevokedWhileInUseIsRefused, TestKeyRevokedDuringALookupIsRefused). A
//     process that calls [Service.Forget] for the key refuses it at once (TestForget,
//     TestForgetDuringALookupDropsItsResult, TestForgetAll, TestWatch).
//  4. A key ends at its ExpiresAt, not Keep later (TestExpiry).
//  5. If the database does not answer, the error is [ErrUnavailable] for valid and for invalid keys (TestUnavailable).
//  6. A key that is in use costs one lookup per Keep and process, however many requests carry it
//     (TestConcurrentCallersShareOneLookup). After Forget it costs one more. So does a key of which only the prefix is
//     right.
//  7. Guesses of prefixes fill at most [Config.MaxKeys] places, evict no existing key, and have at most
//     [MaxUnknownLookups] lookups in flight (TestGuessedKeysAreRefusedCheaply).
//
// # Non-guarantees
//
// During a flood of guesses, a key that is new to this process may wait for a lookup in vain. The error is
// [ErrUnavailable]. Keys in memory are not affected.
//
// The time of an answer shows whether a prefix is known. A prefix is no secret.
//
// # Time
//
// A key expires by the database's clock. The lookup says how much time the key has left, counted from before the query
// was sent. So no clocks are compared, and the key never works too long.
//
// # Goroutines
//
// A lookup runs in a goroutine of its own, because several requests may wait for it and the
// first of them may give up. It ends by itself within [LookUpTimeout].
package identity
