package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Fate is what is known of a pod.
type Fate struct {
	Node  string
	Bound time.Time
	// The scheduler has tried it and found no room.
	Tried bool
	GPUs  int
}

// Follower knows the fate of every pod, by name.
type Follower struct {
	mutex sync.Mutex
	fates map[string]Fate
	// When a pod was last bound, or gone.
	changed time.Time
}

// Follow watches all pods until the context ends.
func Follow(ctx context.Context, client kubernetes.Interface) (*Follower, error) {
	follower := &Follower{fates: map[string]Fate{}, changed: time.Now()}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { follower.see(pod.(*v1.Pod)) },
		UpdateFunc: func(_, pod any) { follower.see(pod.(*v1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			follower.forget(object.(*v1.Pod))
		},
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("the pods could not be listed")
	}
	return follower, nil
}

func (f *Follower) see(pod *v1.Pod) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	fate := f.fates[pod.Name]
	fate.GPUs = Request(pod)
	if pod.Spec.NodeName != "" && fate.Node == "" {
		fate.Node, fate.Bound = pod.Spec.NodeName, time.Now()
		f.changed = fate.Bound
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Reason == v1.PodReasonUnschedulable {
			fate.Tried = true
		}
	}
	f.fates[pod.Name] = fate
}

func (f *Follower) forget(pod *v1.Pod) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.fates, pod.Name)
	f.changed = time.Now()
}

// Fates is a copy of what is known now.
func (f *Follower) Fates() map[string]Fate {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return maps.Clone(f.fates)
}

// Settle waits until so many pods are there, each is bound or was tried, and nothing has changed for so long.
func (f *Follower) Settle(ctx context.Context, pods int, quiet time.Duration) error {
	for {
		if f.settled(pods, quiet) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the scheduler has not come to rest in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (f *Follower) settled(pods int, quiet time.Duration) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.fates) != pods {
		return false
	}
	waiting := false
	for _, fate := range f.fates {
		if fate.Node == "" && !fate.Tried {
			return false
		}
		waiting = waiting || fate.Node == ""
	}
	return !waiting || time.Since(f.changed) > quiet
}
