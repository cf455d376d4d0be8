package main

import (
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// databaseCommands are all that work on a database, but serve and demo.
var databaseCommands = [][]string{
	{"migrate"},
	{"audit"},
	{"keys", "create", "--admin"},
	{"keys", "list"},
	{"keys", "revoke", "aaaaaaaaaa"},
	{"fence", "list"},
	{"fence", "rebase", "a"},
}

// contents returns what is in the files of the working folder.
func contents(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(e.Name()) // of a folder there is none
		files[e.Name()] = string(text)
	}
	return files
}

// TestWrongDatabaseIsNamedAndLeftAlone by every command: the error has the database and what to do, and no file is created or changed.
func TestWrongDatabaseIsNamedAndLeftAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty.db": "", "text.db": strings.Repeat("no database\n", 100)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t)
	const check = "check --database"
	for database, want := range map[string][]string{
		"sqlite:mistyped.db":                {"mistyped.db", "no such file", check},
		"sqlite:no/such/folder/shop.db":     {"no/such/folder", "no such file", check},
		"sqlite:folder":                     {"folder is a folder"},
		"sqlite:empty.db/shop.db":           {"empty.db", "not a directory"},
		"sqlite:empty.db":                   {"empty.db", "has no schema of shop", check},
		"sqlite:text.db":                    {"text.db", "not a database"},
		testbedtest.Database(t):             {"has no schema of shop", check},
		"mysql://user:secret@127.0.0.1:1/d": {"127.0.0.1:1", "refused", check},
	} {
		for _, args := range databaseCommands {
			code, out, stderr := call(t, noEnv, append(args, "--database", database)...)
			if code != 1 || out != "" || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret") {
				t.Errorf("%q on %s: exit code %d: %s%s", args, database, code, out, stderr)
			}
			for _, words := range want {
				if !strings.Contains(stderr, words) {
					t.Errorf("%q on %s: want %q: %s", args, database, words, stderr)
				}
			}
		}
	}
	for database, want := range map[string]string{
		"sqlite:no/such/folder/shop.db": "no/such/folder", "sqlite:folder": "folder is a folder", "sqlite:/proc/shop.db": "/proc", "sqlite:text.db": "not a database",
	} {
		for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate", "--create"}} {
			code, _, stderr := call(t, noEnv, append(args, "--database", database)...)
			if code != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "out of memory") {
				t.Errorf("%q on %s: exit code %d, want %q: %s", args, database, code, want, stderr)
			}
		}
	}
	if after := contents(t); !maps.Equal(before, after) {
		t.Errorf("the folder has changed: %q", after)
	}
}

// TestReadOnlyDatabase: commands that read it work, and those that change it say why they do not.
func TestReadOnlyDatabase(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, noEnv, "migrate", "--create"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := os.Chmod("shop.db", 0o400); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile("shop.db", os.O_RDWR, 0); err == nil {
		f.Close()
		t.Skip("this user may write to every file")
	}
	for _, args := range append([][]string{{"serve", "--listen", "127.0.0.1:0"}}, databaseCommands...) {
		code, _, stderr := call(t, noEnv, args...)
		switch reads := args[0] == "audit" || slices.Contains(args, "list"); {
		case reads && code != 0:
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		case !reads && (code != 1 || !strings.Contains(stderr, "permission denied") || !strings.Contains(stderr, "shop.db")):
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}

// A message has the flag, the value and what to do.
func TestMessagesSayWhatToDo(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	address := taken.Listener.Addr().String()
	for want, args := range map[string][]string{
		"--instances 0: want 1 or more":                   {"demo", "--instances", "0"},
		"--listen " + address + ": ":                      {"lab", "--listen", address},
		"address already in use; port 0 takes a free one": {"lab", "--listen", address},
	} {
		if code, _, stderr := call(t, noEnv, args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, want %q: %s", args, code, want, stderr)
		}
	}
}
