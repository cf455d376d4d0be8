package measure

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Workload is one thing to measure, and on what.
type Workload[S any] struct {
	Name   string
	Weight int  // of its share of the time
	Once   bool // in the first round only
	Cases  []Case[S]
}

// Case is one subject of a workload. Run puts the load on it for about d.
type Case[S any] struct {
	Name string
	Run  func(ctx context.Context, d time.Duration) (S, error)
}

// Findings are the cells by the names of workload and case.
type Findings[S any] map[string]map[string]Cell[S]

// Cell returns what a workload has brought on a subject.
func (f Findings[S]) Cell(workload, subject string) Cell[S] { return f[workload][subject] }

// Measure runs all cases in rounds, so that noise of the machine hits all of them
// alike. In every round another one is the first of its workload.
func Measure[S any](ctx context.Context, plan []Workload[S], s Settings, progress io.Writer) (Findings[S], error) {
	found := Findings[S]{}
	for round := range s.Rounds {
		fmt.Fprintf(progress, "%s: round %d of %d\n", s.Program, round+1, s.Rounds)
		for _, w := range plan {
			if w.Once && round > 0 {
				continue
			}
			for i := range w.Cases {
				c := w.Cases[(i+round)%len(w.Cases)]
				if !s.Only.MatchString(w.Name + "/" + c.Name) {
					continue
				}
				got, err := c.Run(ctx, s.Cell*time.Duration(w.Weight)/time.Duration(s.Rounds))
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", w.Name, c.Name, err)
				}
				if found[w.Name] == nil {
					found[w.Name] = map[string]Cell[S]{}
				}
				found[w.Name][c.Name] = append(found[w.Name][c.Name], got)
			}
		}
	}
	return found, nil
}
