// Package e2e has the black-box tests: they run the program in separate processes, as its users do, against real
// servers.
//
// instance_test.go and fixture_test.go start instances and servers. client_test.go and buyers_test.go are their
// clients, and records_test.go checks the database afterwards. Each other file has a theme, or theme_subject.
package e2e
