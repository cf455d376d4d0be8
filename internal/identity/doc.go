// Package identity authenticates requests: it creates API keys and checks them.
//
// # Keys
//
// A key is a text of 72 characters, shop_PREFIX_REST. The prefix names the key in lists, in logs and in the database.
// The rest has 256 random bits, which only the key's holder has, and a checksum over the whole key. So a key that was
// mistyped or cut off is refused without a lookup. The checksum protects from mistakes only, because any caller can
// compute it.
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
//  3. [Service.Revoke] and a revocation by another process hold everywhere [Config.Keep] after
//     the database has them, at the latest, whatever was being looked up meanwhile
//     (TestKeyRevokedWhileInUseIsRefused, TestKeyRevokedDuringALookupIsRefused). A process that calls [Service.Forget] for
//     the key refuses it at once (TestForget, TestForgetDuringALookupDropsItsResult, TestForgetAll, TestWatch).
//  4. A key ends at its ExpiresAt, not Keep later (TestExpiry).
//  5. When the database does not answer the error is [ErrUnavailable], for good keys and for
//     bad ones: no caller is let in, and no caller learns that the key is wrong (TestUnavailable).
//  6. A key that is in use costs one lookup per Keep and process, however many requests carry
//     it (TestConcurrentCallersShareOneLookup), and one more when it was forgotten. So does a key of which only the prefix is right.
//  7. Guesses of prefixes fill at most [Config.MaxKeys] places, drive no key out of memory
//     that exists, and have at most [MaxUnknownLookups] lookups under way at once (TestGuessedKeysAreRefusedCheaply).
//
// # Non-guarantees
//
// During a flood of guesses a key that this process has not seen before may wait for its turn
// in vain, and is answered with [ErrUnavailable]. Keys that it has seen do not notice.
//
// How long an answer takes reports whether a prefix is known. It is no secret.
//
// # Time
//
// A key expires by the database's clock. The lookup says how much time the key has left, and
// that much is counted here from before the question was sent, so no clocks are compared and
// the key never works too long.
//
// # Goroutines
//
// A lookup runs in a goroutine of its own, because several requests may wait for it and the
// first of them may give up. It ends by itself within [LookUpTimeout].
package identity
