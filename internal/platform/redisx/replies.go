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
