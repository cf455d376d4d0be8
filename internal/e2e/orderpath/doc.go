// Package orderpath measures the path of an order: which code of this repository runs for one order, by coverage counters.
//
// orderpath_test.go runs the program and places orders, windows_test.go decides which blocks belong to the path, and
// sources_test.go finds their functions. stacks_test.go counts how often the path enters a package. page_test.go compares
// the figures with the table of docs/architecture.md, or writes the table.
package orderpath
