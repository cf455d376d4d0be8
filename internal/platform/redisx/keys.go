package redisx

import (
	"errors"
	"fmt"
	"strings"
)

// TagOf returns the part of key that decides about its slot in a cluster: the text between the first opening brace and the next closing one, if anything does.
func TagOf(key string) (string, bool) {
	_, after, _ := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(after, "}")
	return tag, closed && tag != ""
}

// CheckKey refuses keys that would end their hash tag too early.
func CheckKey(key string) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	if _, ok := TagOf(key); !ok && strings.Contains(key, "}") {
		return fmt.Errorf("key %q has a closing brace and no hash tag", key)
	}
	return nil
}
