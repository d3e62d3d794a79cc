// Load lets a scheduler bind the pods of a synthetic workload to fake nodes, says how fast that went, and checks what
// came of it: no node holds more than it has, and which gangs are whole.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubescheduler/cluster"
)

// Quiet is how long nothing may happen before what waits counts as having no room. The scheduler is told to look at a
// pod again after 2 seconds at most.
const quiet = 5 * time.Second

type options struct {
	kubeconfig string
	nodes      int
	seed       uint64
	fill       int
	waves      int
	turnover   int
	whole      bool
	dumps      string
	limit      time.Duration
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes of 8 GPUs")
	flag.Uint64Var(&o.seed, "seed", 1, "of the workload")
	flag.IntVar(&o.fill, "fill", 90, "percent of all GPUs that jobs ask for")
	flag.IntVar(&o.waves, "waves", 4, "how often the cluster is filled")
	flag.IntVar(&o.turnover, "turnover", 30, "percent of the jobs that end between two waves")
	flag.BoolVar(&o.whole, "whole", false, "fail if a part of a gang is bound and the rest is not")
	flag.StringVar(&o.dumps, "dumps", "", "folder for nodes and pods as kubectl prints them, after each step")
	flag.DurationVar(&o.limit, "limit", 20*time.Minute, "give up after this long")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	if err := run(ctx, o); err != nil {
		log.Fatalln("load:", err)
	}
}

func run(ctx context.Context, o options) error {
	client, err := cluster.Connect(o.kubeconfig)
	if err != nil {
		return err
	}
	follower, err := cluster.Follow(ctx, client)
	if err != nil {
		return err
	}
	if err := cluster.MakeNodes(ctx, client, o.nodes); err != nil {
		return err
	}

	work := newWorkload(o.seed)
	var jobs []cluster.Job
	var total wave
	for number := range o.waves {
		if number > 0 {
			var ended []cluster.Job
			ended, jobs = work.split(jobs, o.turnover)
			if err := remove(ctx, client, follower, ended); err != nil {
				return err
			}
			if err := dump(ctx, client, o.dumps, fmt.Sprintf("%02d-ended", 2*number)); err != nil {
				return err
			}
		}
		fresh := work.fill(o.nodes*cluster.GPUsPerNode*o.fill/100 - gpus(jobs))
		jobs = append(jobs, fresh...)
		wave, err := submit(ctx, client, follower, fresh)
		if err != nil {
			return err
		}
		fmt.Printf("wave %d: %s\n", number+1, wave)
		total.add(wave)
		if err := dump(ctx, client, o.dumps, fmt.Sprintf("%02d-filled", 2*number+1)); err != nil {
			return err
		}
	}
	fmt.Printf("in all: %s\n", total)
	return check(jobs, follower.Fates(), o)
}

// Wave is how a part of the workload went.
type wave struct {
	pods, bound   int
	made, binding time.Duration
}

func (w *wave) add(other wave) {
	w.pods += other.pods
	w.bound += other.bound
	w.made += other.made
	w.binding += other.binding
}

func (w wave) String() string {
	rate := float64(w.bound) / max(w.binding.Seconds(), 1e-9)
	return fmt.Sprintf("%d pods made in %.2f s, %d bound in %.2f s (%.0f pods/s)",
		w.pods, w.made.Seconds(), w.bound, w.binding.Seconds(), rate)
}

// Submit makes the pods of some jobs and waits until each is bound or has no room. Pods of earlier waves that find room
// only now count too. The time is that from the first pod made to the last one bound.
func submit(ctx context.Context, client kubernetes.Interface, follower *cluster.Follower, jobs []cluster.Job) (wave, error) {
	var pods []*v1.Pod
	for _, job := range jobs {
		pods = append(pods, job.Objects()...)
	}
	there := len(follower.Fates())
	start := time.Now()
	if err := cluster.MakePods(ctx, client, pods); err != nil {
		return wave{}, err
	}
	made := time.Since(start)
	if err := follower.Settle(ctx, there+len(pods), quiet); err != nil {
		return wave{}, err
	}
	result := wave{pods: len(pods), made: made}
	for _, fate := range follower.Fates() {
		if fate.Node != "" && fate.Bound.After(start) {
			result.bound++
			result.binding = max(result.binding, fate.Bound.Sub(start))
		}
	}
	return result, nil
}

// Remove ends jobs and waits until their pods are gone, and what waited has had its chance.
func remove(ctx context.Context, client kubernetes.Interface, follower *cluster.Follower, jobs []cluster.Job) error {
	left := len(follower.Fates())
	var names []string
	for _, job := range jobs {
		for _, pod := range job.Objects() {
			names = append(names, pod.Name)
		}
	}
	err := cluster.InParallel(ctx, names, func(ctx context.Context, name string) error {
		return client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
	})
	if err != nil {
		return err
	}
	return follower.Settle(ctx, left-len(names), quiet)
}

func gpus(jobs []cluster.Job) int {
	sum := 0
	for _, job := range jobs {
		sum += job.GPUs()
	}
	return sum
}

// Check counts what nodes hold and what gangs have.
func check(jobs []cluster.Job, fates map[string]cluster.Fate, o options) error {
	held := map[string]int{}
	for _, fate := range fates {
		if fate.Node != "" {
			held[fate.Node] += fate.GPUs
		}
	}
	busy, partial := 0, 0
	var wrong []error
	for _, node := range slices.Sorted(maps.Keys(held)) {
		busy += held[node]
		if held[node] > cluster.GPUsPerNode {
			wrong = append(wrong, fmt.Errorf("%s holds %d of %d GPUs", node, held[node], cluster.GPUsPerNode))
		}
		if held[node] < cluster.GPUsPerNode {
			partial++
		}
	}
	whole, none := 0, 0
	var broken []string
	for _, job := range jobs {
		bound := 0
		for _, pod := range job.Objects() {
			if fates[pod.Name].Node != "" {
				bound++
			}
		}
		switch bound {
		case job.Pods:
			whole++
		case 0:
			none++
		default:
			broken = append(broken, fmt.Sprintf("%s has %d of %d pods", job.Name, bound, job.Pods))
		}
	}
	fmt.Printf("%d of %d GPUs busy, %d nodes partly; %d jobs whole, %d not begun, %d in part\n",
		busy, o.nodes*cluster.GPUsPerNode, partial, whole, none, len(broken))
	for _, line := range broken {
		fmt.Println(" ", line)
	}
	if o.whole && len(broken) > 0 {
		wrong = append(wrong, fmt.Errorf("%d gangs are bound in part", len(broken)))
	}
	return errors.Join(wrong...)
}

// Dump writes what there is after a step, if there is a folder for it.
func dump(ctx context.Context, client kubernetes.Interface, folder, step string) error {
	if folder == "" {
		return nil
	}
	text, err := cluster.List(ctx, client)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, step+".json"), text, 0o644)
}
