package identity_test

import (
	"testing"

	"example.com/shop/internal/identity"
)

// BenchmarkAuthenticate is what a request costs whose key is remembered, and one whose key is
// nobody's, where the database is in memory.
func BenchmarkAuthenticate(b *testing.B) {
	s, err := identity.New(newShelf(), identity.Config{})
	if err != nil {
		b.Fatal(err)
	}
	text, _, err := s.Create(b.Context(), identity.NewKey{Customer: "c1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := s.Authenticate(b.Context(), text); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("guessed", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if _, err := s.Authenticate(b.Context(), guess(n)); err == nil {
				b.Fatal("a guess is right")
			}
		}
	})
}
