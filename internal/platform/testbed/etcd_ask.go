package testbed

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// etcdStatus is what a member says of itself. Numbers of 64 bits are strings in JSON.
type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader string `json:"leader"` // "0" or empty without one
}

// etcdMember is what a member knows of another one, or of itself.
type etcdMember struct {
	ID   string `json:"ID"`
	Name string `json:"name"`
}

// view returns what the member says of itself and of the cluster.
func (e *Etcd) view(ctx context.Context) (etcdStatus, []etcdMember, error) {
	var status etcdStatus
	if err := e.ask(ctx, "maintenance/status", `{}`, &status); err != nil {
		return status, nil, err
	}
	var list struct {
		Members []etcdMember `json:"members"`
	}
	err := e.ask(ctx, "cluster/member/list", `{}`, &list)
	return status, list.Members, err
}

// ask puts one question by the JSON gateway of etcd.
func (e *Etcd) ask(ctx context.Context, method, question string, answer any) error {
	if err := askJSON(ctx, http.MethodPost, "http://"+e.addr+"/v3/"+method, question, answer); err != nil {
		return fmt.Errorf("etcd: %s: %w", method, err)
	}
	return nil
}

// askJSON sends a request on a connection of its own, so that nothing stays behind in an idle program. A status other than 200 is an error.
// An answer of nil ignores the body.
func askJSON(ctx context.Context, method, url, question string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(question))
	if err != nil {
		return err
	}
	request.Close = true
	transport := &http.Transport{DisableKeepAlives: true} // no proxy either: the server is on this machine
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}
