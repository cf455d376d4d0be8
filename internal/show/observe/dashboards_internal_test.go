package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write the dashboards of deployments/observe")

// files is the folder of the dashboards and rules.
var files = func() string {
	folder, err := filepath.Abs("../../../deployments/observe")
	if err != nil {
		panic(err)
	}
	return folder
}()

// dashboard is a dashboard of dashboards.yml.
type dashboard struct {
	Name, Title string
	Rows        []struct {
		Title  string
		Panels []panel
	}
}

type panel struct {
	Title, About, Unit string
	Queries            []struct{ Legend, Expr string }
}

func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(files, "dashboards.yml"))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// The dashboards for vmui and for Grafana are those of dashboards.yml. `make gen` writes them.
func TestDashboardsAreGenerated(t *testing.T) {
	t.Parallel()
	for _, d := range readDashboards(t) {
		for folder, text := range map[string]any{"vmui": d.vmui(), "grafana": d.grafana()} {
			var want bytes.Buffer
			encoder := json.NewEncoder(&want)
			encoder.SetEscapeHTML(false)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(text); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(files, folder, d.Name+".json")
			if *update {
				if err := os.WriteFile(name, want.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, want.Bytes()) {
				t.Errorf("%s is stale: make gen (%v)", name, err)
			}
		}
	}
}

// object is one of JSON.
type object = map[string]any

// How many columns vmui and Grafana have. The panels of a row share them.
const vmuiColumns, grafanaColumns = 12, 24

// vmui returns the dashboard as VictoriaMetrics reads it.
func (d dashboard) vmui() object {
	var rows []object
	for _, r := range d.Rows {
		var panels []object
		for _, p := range r.Panels {
			var exprs, legends []string
			for _, q := range p.Queries {
				exprs, legends = append(exprs, q.Expr), append(legends, q.Legend)
			}
			panels = append(panels, object{
				"title": p.Title, "description": p.About, "unit": p.Unit, "expr": exprs, "alias": legends, "width": vmuiColumns / len(r.Panels),
			})
		}
		rows = append(rows, object{"title": r.Title, "panels": panels})
	}
	return object{"title": d.Title, "filename": d.Name + ".json", "rows": rows}
}

// grafana returns the dashboard as Grafana imports it.
func (d dashboard) grafana() object {
	const height = 8
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []object
	y := 0
	for _, r := range d.Rows {
		panels = append(panels, object{"type": "row", "title": r.Title, "gridPos": object{"x": 0, "y": y, "w": grafanaColumns, "h": 1}})
		y++
		w := grafanaColumns / len(r.Panels)
		for i, p := range r.Panels {
			var targets []object
			for n, q := range p.Queries {
				targets = append(targets, object{"refId": string(rune('A' + n)), "expr": q.Expr, "legendFormat": q.Legend, "datasource": source})
			}
			panels = append(panels, object{
				"type": "timeseries", "title": p.Title, "description": p.About, "datasource": source, "targets": targets,
				"fieldConfig": object{"defaults": object{"unit": "suffix: " + p.Unit}, "overrides": []object{}},
				"gridPos":     object{"x": i * w, "y": y, "w": w, "h": height},
			})
		}
		y += height
	}
	return object{
		"uid": "shop-" + d.Name, "title": "Shop: " + d.Title, "schemaVersion": 39, "refresh": "5s", "time": object{"from": "now-15m", "to": "now"},
		"panels": panels,
		"templating": object{"list": []object{
			{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
		}},
	}
}
