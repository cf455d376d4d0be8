package redisclient_test

import (
	"testing"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/redisx"
)

func TestNewByURL(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"redis://h:1/2":                         true,
		"rediss://h:1":                          true,
		"redis+sentinel://h:1,h:2/main":         true,
		"redis+sentinel://u:p@h:1/main":         true,
		"redis+sentinel://h:1,h:2":              false,
		"redis+cluster://h:1,h:2,h:3":           true,
		"rediss+cluster://u:p%40@h:1":           true,
		"redis+cluster://h":                     false,
		"redis+other://h:1":                     false,
		"http+cluster://h:1":                    false,
		"redis+sentinel://h:1,nothing/main":     false,
		"http://h:1":                            false,
		"h:1":                                   false,
		"redis://h:1/2?max_retries=3&unknown=1": false,
		"rediss://h:1?skip_verify=true":         false, // go-redis would not check the server
	} {
		rdb, err := redisclient.New(address)
		if (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil {
			continue
		}
		if err := redisx.Check(rdb); err != nil {
			t.Errorf("%s: Check refuses the client: %v", address, err)
		}
		rdb.Close()
	}
}
