package redisx

import "fmt"

// Ints reads a reply of n integers.
func Ints(reply any, n int) ([]int64, error) {
	all, _ := reply.([]any)
	list := make([]int64, 0, n)
	for _, one := range all {
		if number, ok := one.(int64); ok {
			list = append(list, number)
		}
	}
	if len(all) != n || len(list) != n {
		return nil, fmt.Errorf("redisx: reply %v", reply)
	}
	return list, nil
}

// Strings reads a list of strings in a reply.
func Strings(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// Flag makes a condition an argument of a script.
func Flag(on bool) int {
	if on {
		return 1
	}
	return 0
}
