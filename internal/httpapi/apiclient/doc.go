// Package apiclient is a client of the HTTP API that is generated from its description alone. Tests run the life of an order
// with it, so that a description from which no client can be generated fails a test.
package apiclient

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config oapi-codegen.yaml ../openapi.yaml
