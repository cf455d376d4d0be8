// Package party defines the names of customers, and of payments as payment providers name them.
package party

import "regexp"

var id = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}$`)

// ValidID reports whether s can be a customer's or a payment's id: 1 to 64
// letters, digits and . _ : @ -, beginning with a letter or digit.
func ValidID(s string) bool { return id.MatchString(s) }
