// A scheduler that asks slotwise where its jobs go.
//
// The scheduler knows the truth; slotwise keeps a copy of it that it can decide on. So there are four things to do: put
// the cluster once, say what happens, ask, and put the cluster again when slotwise says that it has none.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

// What slotwise is told and what it answers. Fields that this program has no use for are left out.
type (
	node struct {
		Name  string `json:"name"`
		GPUs  int    `json:"gpus"`
		Model string `json:"model,omitempty"`
		Rack  string `json:"rack,omitempty"`
	}
	seat struct {
		Node string `json:"node"`
		GPUs []int  `json:"gpus,omitempty"` // none: the lowest that are free
	}
	running struct {
		Job       string `json:"job"`
		GPUs      int    `json:"gpus_per_instance"`
		Instances []seat `json:"instances"`
	}
	cluster struct {
		Schema  int       `json:"schema"`
		Nodes   []node    `json:"nodes"`
		Running []running `json:"running"`
	}
	waiting struct {
		Job       string `json:"job"`
		Instances int    `json:"instances"`
		GPUs      int    `json:"gpus_per_instance"`
	}
	edit struct {
		Start *running `json:"start,omitempty"`
		End   string   `json:"end,omitempty"`
	}
	candidate struct {
		Job   string `json:"job"`
		Name  string `json:"candidate"`
		Place []seat `json:"place"`
	}
	problem struct {
		Word    string `json:"error"` // no-cluster, stale, refused, busy, late, …
		Message string `json:"message"`
		Version string `json:"version"` // with stale: the version that there is
	}
)

func (p *problem) Error() string { return p.Word + ": " + p.Message }

// A connection to slotwise. Its version is that of the last answer: a call for another is refused as stale, so nothing is
// ever decided on a cluster that has changed unseen.
type slotwise struct {
	url, token string
	version    *string // none yet: any will do
	http       http.Client
}

// call sends a request in JSON and reads the answer into out; every answer has a version.
func (s *slotwise) call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("slotwise-deadline-ms", "2000") // later, the answer is of no use
	if s.token != "" {
		request.Header.Set("authorization", "Bearer "+s.token)
	}
	response, err := s.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		bad := &problem{Word: response.Status}
		_ = json.Unmarshal(answer, bad) // a proxy's answer is no JSON; the status says enough
		return bad
	}
	var of struct{ Version string }
	if err := json.Unmarshal(answer, &of); err != nil {
		return err
	}
	s.version = &of.Version
	return json.Unmarshal(answer, out)
}

// put puts all that the scheduler knows: at the start, and whenever slotwise has lost it.
func (s *slotwise) put(all cluster) error {
	return s.call("PUT", "/v1/cluster", all, &struct{}{})
}

// tell says what has happened. The id makes it safe to send again when an answer was lost.
func (s *slotwise) tell(id string, edits ...edit) error {
	in := map[string]any{"version": s.version, "id": id, "edits": edits}
	return s.call("POST", "/v1/edits", in, &struct{}{})
}

// score asks which of the candidates of a job is best; it returns the name of that one.
func (s *slotwise) score(job waiting, candidates ...candidate) (best string, err error) {
	var out struct {
		Rows []struct {
			Candidate string
			Rank      *int // none: infeasible
		}
	}
	in := map[string]any{"version": s.version, "queue": []waiting{job}, "candidates": candidates}
	err = s.call("POST", "/v1/score", in, &out)
	for _, row := range out.Rows {
		if row.Rank != nil && *row.Rank == 1 {
			best = row.Candidate
		}
	}
	return best, err
}

// place lets slotwise decide where a job goes, and takes it at its word: the job runs there from now on.
func (s *slotwise) place(id string, job waiting) (seats []seat, why string, err error) {
	var out struct {
		Decisions []struct {
			Status, Why string
			Instances   []seat
		}
	}
	in := map[string]any{"version": s.version, "id": id, "queue": []waiting{job}, "commit": true}
	if err := s.call("POST", "/v1/place", in, &out); err != nil {
		return nil, "", err
	}
	return out.Decisions[0].Instances, out.Decisions[0].Why, nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: scheduler URL")
	}
	s := &slotwise{url: os.Args[1], token: os.Getenv("SLOTWISE_TOKEN"), http: http.Client{Timeout: 5 * time.Second}}
	truth := cluster{Schema: 1, Running: []running{{"train-1", 4, []seat{{Node: "n0", GPUs: []int{0, 1, 2, 3}}}}}}
	for i := range 4 {
		truth.Nodes = append(truth.Nodes, node{Name: fmt.Sprintf("n%d", i), GPUs: 8, Model: "H100", Rack: "r0"})
	}

	// The service knows nothing yet, as after a restart: it says so, and is told.
	second := running{"train-2", 2, []seat{{Node: "n1", GPUs: []int{0, 1}}}}
	err := s.tell("event-1", edit{Start: &second})
	var bad *problem
	if errors.As(err, &bad) && bad.Word == "no-cluster" {
		fmt.Println("put the cluster")
		if err = s.put(truth); err == nil {
			err = s.tell("event-1", edit{Start: &second})
		}
	}
	check(err)

	// Beside what runs, or on a node of its own?
	job := waiting{Job: "train-3", Instances: 1, GPUs: 4}
	best, err := s.score(job,
		candidate{job.Job, "beside train-1", []seat{{Node: "n0"}}},
		candidate{job.Job, "alone", []seat{{Node: "n3"}}})
	check(err)
	fmt.Println("best for train-3:", best)

	// Another client came between: its change made the version stale. Whoever learns that looks at what changed, or just
	// asks again, for the version that there is.
	seen := s.version
	check(s.tell("event-2", edit{End: "train-2"}))
	s.version = seen
	seats, why, err := s.place("place-1", waiting{Job: "gang", Instances: 3, GPUs: 8})
	if errors.As(err, &bad) && bad.Word == "stale" {
		fmt.Println("stale")
		s.version = &bad.Version
		seats, why, err = s.place("place-1", waiting{Job: "gang", Instances: 3, GPUs: 8})
	}
	check(err)
	for _, seat := range seats {
		fmt.Println("gang on", seat.Node)
	}

	_, why, err = s.place("place-2", waiting{Job: "more", Instances: 1, GPUs: 8})
	check(err)
	fmt.Println("more is blocked:", why)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
