// Record is an extender that lets everything pass and keeps what the scheduler asked, and makes the pods that it asks
// about.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extender "k8s.io/kube-scheduler/extender/v1"

	"kubescheduler/cluster"
)

func main() {
	log.SetFlags(0)
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	listen := flag.String("listen", "", "address of the extender")
	out := flag.String("out", "", "file for the requests")
	nodes := flag.Int("nodes", 5, "nodes of 8 GPUs")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	file, err := os.Create(*out)
	if err != nil {
		log.Fatalln("record:", err)
	}
	recorder := &recorder{file: file}
	go func() { log.Fatalln("record:", http.ListenAndServe(*listen, recorder.handler())) }()
	if err := scenario(ctx, recorder, *kubeconfig, *nodes); err != nil {
		log.Fatalln("record:", err)
	}
	if err := file.Close(); err != nil {
		log.Fatalln("record:", err)
	}
}

// Scenario makes the scheduler send each kind of request: for a pod that fits on every node; for pods alike that fill a
// node each; for one that fits only where others are evicted, and once more for its nominated node alone.
func scenario(ctx context.Context, recorder *recorder, kubeconfig string, nodes int) error {
	client, err := cluster.Connect(kubeconfig)
	if err != nil {
		return err
	}
	follower, err := cluster.Follow(ctx, client)
	if err != nil {
		return err
	}
	if err := cluster.MakeNodes(ctx, client, nodes); err != nil {
		return err
	}
	list, err := cluster.List(ctx, client)
	if err != nil {
		return err
	}
	if err := recorder.keep("cluster", list); err != nil {
		return err
	}
	urgent := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000}
	if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, urgent, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The class takes a moment to be known.
	time.Sleep(time.Second)

	single := cluster.Job{Name: "single", Pods: 1, GPUsPerPod: 2}.Objects()
	gang := cluster.Job{Name: "gang", Pods: nodes - 1, GPUsPerPod: cluster.GPUsPerNode}.Objects()
	evicting := cluster.Job{Name: "evicting", Pods: 1, GPUsPerPod: cluster.GPUsPerNode}.Objects()
	evicting[0].Spec.PriorityClassName = urgent.Name
	for _, pods := range [][]*v1.Pod{single, gang} {
		there := len(follower.Fates())
		if err := cluster.MakePods(ctx, client, pods); err != nil {
			return err
		}
		if err := follower.Settle(ctx, there+len(pods), time.Second); err != nil {
			return err
		}
	}
	if err := cluster.MakePods(ctx, client, evicting); err != nil {
		return err
	}
	for follower.Fates()[evicting[0].Name].Node == "" {
		if ctx.Err() != nil {
			return fmt.Errorf("nothing was evicted: %w", ctx.Err())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

type recorder struct {
	mutex sync.Mutex
	file  *os.File
}

func (r *recorder) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/extender/filter", answer(r, "filter", func(args extender.ExtenderArgs) any {
		return extender.ExtenderFilterResult{Nodes: args.Nodes, NodeNames: args.NodeNames}
	}))
	mux.Handle("POST /v1/extender/prioritize", answer(r, "prioritize", func(extender.ExtenderArgs) any {
		return extender.HostPriorityList{}
	}))
	mux.Handle("POST /v1/extender/preempt", answer(r, "preempt", func(args extender.ExtenderPreemptionArgs) any {
		return extender.ExtenderPreemptionResult{NodeNameToMetaVictims: victims(args)}
	}))
	// The scheduler then binds the pod itself, as the extender may be ignored.
	mux.Handle("POST /v1/extender/bind", answer(r, "bind", func(extender.ExtenderBindingArgs) any {
		return extender.ExtenderBindingResult{Error: "only recorded"}
	}))
	return mux
}

// Victims are all that the scheduler proposes, by their ids.
func victims(args extender.ExtenderPreemptionArgs) map[string]*extender.MetaVictims {
	if args.NodeNameToMetaVictims != nil {
		return args.NodeNameToMetaVictims
	}
	all := map[string]*extender.MetaVictims{}
	for node, victims := range args.NodeNameToVictims {
		meta := &extender.MetaVictims{NumPDBViolations: victims.NumPDBViolations}
		for _, pod := range victims.Pods {
			meta.Pods = append(meta.Pods, &extender.MetaPod{UID: string(pod.UID)})
		}
		all[node] = meta
	}
	return all
}

// Answer keeps the body of a request as it came, and answers it.
func answer[Args any](r *recorder, verb string, reply func(Args) any) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var args Args
		if err == nil {
			err = json.Unmarshal(body, &args)
		}
		if err == nil {
			err = r.keep(verb, body)
		}
		if err != nil {
			log.Fatalln("record:", err)
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(reply(args)); err != nil {
			log.Println("record:", err)
		}
	})
}

// Keep writes a line: a verb, and the body to the byte.
func (r *recorder) keep(verb string, body []byte) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err := fmt.Fprintf(r.file, "{\"verb\":%q,\"body\":%s}\n", verb, bytes.TrimSpace(body))
	return err
}
