// Package blackbox tests package httpapi over HTTP. It has nothing but tests. A test file has the name of the file in
// httpapi that it tests. fixture_test.go starts the service, and checks each response against the specification.
package blackbox
