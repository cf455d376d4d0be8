package cluster_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
)

func TestEncodeMember(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	for _, m := range []cluster.Member{
		{Name: "a", Started: at},
		{Name: "shop-1", Address: "[::1]:8080", Role: "api", Version: "v1.2.3-4-gabc", Started: at},
		{Name: "a;b/c%d", Address: "http://x/?a=b#c", Role: "ö ü", Version: ";;", Started: time.Time{}},
		{Name: strings.Repeat("%", 128), Address: strings.Repeat("/", 128)},
	} {
		text := cluster.EncodeMember(m)
		if strings.ContainsAny(text, "/ ") {
			t.Errorf("%q is no name of a node", text)
		}
		for _, later := range []string{"", ";more", ";more;and more"} { // of a later version
			got, err := cluster.DecodeMember(text + later)
			if diff := cmp.Diff(m, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		}
	}
	if got := cluster.EncodeMember(cluster.Member{Name: "shop-1", Address: "10.0.0.7:8080", Role: "api", Version: "v1", Started: at}); got !=
		"shop-1;10.0.0.7:8080;api;v1;20260102T030405.678Z" {
		t.Errorf("%q cannot be read by earlier versions", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ";", "a", "a;b;c;d", "a;b;c;d;e", ";b;c;d;20260102T030405.678Z", "%zz;b;c;d;20260102T030405.678Z",
		"a%00;b;c;d;20260102T030405.678Z", "a;b;c;d;2026-01-02T03:04:05Z", strings.Repeat("a", 129) + ";b;c;d;20260102T030405.678Z",
	} {
		if m, err := cluster.DecodeMember(text); !errors.Is(err, cluster.ErrStray) {
			t.Errorf("%q is %+v, %v", text, m, err)
		}
		if l, err := cluster.DecodeLeader(text); !errors.Is(err, cluster.ErrStray) {
			t.Errorf("%q is %+v, %v", text, l, err)
		}
	}
	for _, text := range []string{"a;-1;o;20260102T030405.678Z", "a;18446744073709551616;o;20260102T030405.678Z", ";1;o;20260102T030405.678Z"} {
		if l, err := cluster.DecodeLeader(text); !errors.Is(err, cluster.ErrStray) {
			t.Errorf("%q is %+v, %v", text, l, err)
		}
	}
}

func TestEncodeLeader(t *testing.T) {
	t.Parallel()
	l := cluster.Leader{
		Name: "a;/ ", Fence: dlock.Fence{Token: math.MaxUint64, Owner: "x-1;"}, Since: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
	}
	for _, later := range []string{"", ";more"} {
		got, err := cluster.DecodeLeader(cluster.EncodeLeader(l) + later)
		if diff := cmp.Diff(l, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
}

func TestNewView(t *testing.T) {
	t.Parallel()
	v := cluster.NewView([]cluster.Member{{Name: "b", Address: "1"}, {Name: "a"}, {Name: "b", Address: "2"}}, 3)
	want := cluster.View{Members: []cluster.Member{{Name: "a"}, {Name: "b", Address: "1"}}, Ignored: 3}
	if !v.Equal(want) || v.Equal(cluster.NewView(want.Members, 2)) || v.Equal(cluster.NewView(want.Members[:1], 3)) {
		t.Errorf("view %+v", v)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("shop-1;10.0.0.7:8080;api;v1;20260102T030405.678Z")
	f.Add("shop-1;12;owner;20260102T030405.678Z")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := cluster.DecodeMember(text); err == nil {
			if again, err := cluster.DecodeMember(cluster.EncodeMember(m)); err != nil || !again.Equal(m) {
				t.Errorf("%q: %+v and %+v, %v", text, m, again, err)
			}
		}
		if l, err := cluster.DecodeLeader(text); err == nil {
			if again, err := cluster.DecodeLeader(cluster.EncodeLeader(l)); err != nil || !again.Equal(l) {
				t.Errorf("%q: %+v and %+v, %v", text, l, again, err)
			}
		}
	})
}
