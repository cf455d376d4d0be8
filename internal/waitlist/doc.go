// Package waitlist is.
package waitlist
