package controlroom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"example.com/shop/internal/show/lab"
)

// labRun is the latest lab. Its fields are guarded by the room's mu.
type labRun struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	said
	Chinese said `json:"zh"`
}

// said is what a lab says in one language.
type said struct {
	Steps  []lab.Event `json:"steps"`
	Result *lab.Result `json:"result,omitempty"`
	SVG    string      `json:"svg,omitempty"`
}

// listedLab is a lab in the languages of the page.
type listedLab struct {
	lab.Lab

	Chinese lab.Words `json:"zh"`
}

// listLabs answers with all labs.
func listLabs(w http.ResponseWriter, _ *http.Request) {
	var all []listedLab
	for _, l := range lab.All() {
		all = append(all, listedLab{l, l.Chinese()})
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(all) //nolint:errcheck,errchkjson // the client has gone
}

// runLab starts a lab on stores of its own. It returns at once; the lab ends with ctx.
func (r *Room) runLab(ctx context.Context, name string) error {
	l, err := lab.Find(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	run := &labRun{Name: l.Name, Running: true, said: said{Steps: []lab.Event{}}, Chinese: said{Steps: []lab.Event{}}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lab != nil && r.lab.Running {
		return conflict{errors.New("a lab is running: wait for its verdict")}
	}
	r.lab = run
	r.notify()
	r.tasks.Go(func() {
		result := l.Do(ctx, lab.Config{Executable: r.Executable, Seen: func(e lab.Event) {
			chinese := e.Chinese()
			r.mu.Lock()
			defer r.mu.Unlock()
			run.Steps, run.Chinese.Steps = append(run.Steps, e), append(run.Chinese.Steps, chinese)
			r.notify()
		}})
		chinese := result.Chinese()
		var picture, inChinese string
		if result.Picture != nil {
			picture = result.Picture.SVG()
			inChinese = lab.ChineseSVG(picture)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		run.Running, run.Result, run.Chinese.Result = false, &result, &chinese
		run.SVG, run.Chinese.SVG = picture, inChinese
		r.notify()
	})
	return nil
}
