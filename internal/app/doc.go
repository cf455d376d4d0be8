// Package app runs one instance of the shop.
//
// [Run] opens the stores, wires an instance by hand from top to bottom, serves until its context ends, and drains: app.go is that
// page. Each other file has one subject: its options, how it is opened, and what it does in the background.
package app
