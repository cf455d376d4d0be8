package zkcluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/zookeeper"
)

// Every path is built here. Nodes of other programs have names of another form.

func (c *Cluster) membersDir() string { return c.cfg.Prefix + "/members" }

func (c *Cluster) electionDir(election string) string {
	return c.cfg.Prefix + "/elections/" + zookeeper.Escape(election)
}

func (c *Cluster) configDir() string { return c.cfg.Prefix + "/config" }

// label is what comes in the name of a protected node between its ID and its number.
func label(text string) string { return text + ";" }

// entry is a protected node, parsed from its name: ID-TEXT;NUMBER.
type entry struct {
	name, id, text string
	number         int32
}

func parse(name string) (entry, error) {
	id, rest, ok := strings.Cut(name, "-")
	cut := strings.LastIndexByte(rest, ';')
	if !ok || id == "" || cut < 0 {
		return entry{}, fmt.Errorf("%w: %.120q", cluster.ErrStray, name)
	}
	number, err := strconv.ParseInt(rest[cut+1:], 10, 32)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", cluster.ErrStray, err)
	}
	return entry{name, id, rest[:cut], int32(number)}, nil
}

// entries passes the children of dir that are entries to read, in the order in which they were created. It also returns
// how many are no entries or cannot be read.
func entries[T any](c *Cluster, dir string, names []string, read func(entry) (T, error)) (list []T, ignored int) {
	var sorted []entry
	for _, name := range names {
		e, err := parse(name)
		if err != nil {
			ignored++
			c.strays.Report(c.cfg.OnError, "zkcluster: node", dir+"/"+name, err)
			continue
		}
		sorted = append(sorted, e)
	}
	// Numbers wrap around after 2^31 nodes.
	slices.SortFunc(sorted, func(a, b entry) int { return int(a.number - b.number) })
	for _, e := range sorted {
		one, err := read(e)
		if err != nil {
			ignored++
			c.strays.Report(c.cfg.OnError, "zkcluster: node", dir+"/"+e.name, err)
			continue
		}
		list = append(list, one)
	}
	return list, ignored
}

// seat is the entry of a member: its incarnation, a semicolon, and the member.
type seat struct {
	entry

	incarnation string // of the call of Join that made it
	member      cluster.Member
}

// seats returns those of the members.
func (c *Cluster) seats(names []string) (list []seat, ignored int) {
	return entries(c, c.membersDir(), names, func(e entry) (seat, error) {
		incarnation, text, _ := strings.Cut(e.text, ";")
		m, err := cluster.DecodeMember(text)
		return seat{e, incarnation, m}, err
	})
}
