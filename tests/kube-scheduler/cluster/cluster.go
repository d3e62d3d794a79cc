// Package cluster makes fake GPU nodes and the pods that ask for them, and follows what becomes of the pods.
package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// GPU is the resource that everything here is about.
const GPU v1.ResourceName = "nvidia.com/gpu"

// GPUsPerNode is what a node has of it.
const GPUsPerNode = 8

// Labels by which pods are one job. The first is the one of the coscheduling plugin, the second that of a Job.
const (
	GangLabel = "scheduling.x-k8s.io/pod-group"
	JobLabel  = "batch.kubernetes.io/job-name"
)

const (
	nodesPerRack  = 16
	racksPerBlock = 8
)

// Connect returns a client that is not held back by a rate limit of its own.
func Connect(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// Node is a node of 8 GPUs in its rack and block. It says that it is ready, and kwok sees to the rest.
func Node(index int) *v1.Node {
	name := fmt.Sprintf("node-%04d", index)
	rack := index / nodesPerRack
	amounts := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse("128"),
		v1.ResourceMemory: resource.MustParse("1Ti"),
		v1.ResourcePods:   resource.MustParse("110"),
		GPU:               *resource.NewQuantity(GPUsPerNode, resource.DecimalSI),
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				"kubernetes.io/hostname":            name,
				"nvidia.com/gpu.product":            "NVIDIA-H100-80GB-HBM3",
				"cloud.provider.com/topology-rack":  fmt.Sprintf("rack-%02d", rack),
				"cloud.provider.com/topology-block": fmt.Sprintf("block-%d", rack/racksPerBlock),
			},
		},
		Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// Job is some pods that are of use only together.
type Job struct {
	Name       string
	Pods       int
	GPUsPerPod int
}

// GPUs is what the job asks for in all.
func (j Job) GPUs() int { return j.Pods * j.GPUsPerPod }

// Objects are the pods of the job. A pod on its own is labelled as that of a Job, others as a gang.
func (j Job) Objects() []*v1.Pod {
	label := JobLabel
	if j.Pods > 1 {
		label = GangLabel
	}
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(int64(8*j.GPUsPerPod), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(64*j.GPUsPerPod)<<30, resource.BinarySI),
		GPU:               *resource.NewQuantity(int64(j.GPUsPerPod), resource.DecimalSI),
	}
	pods := make([]*v1.Pod, j.Pods)
	for i := range pods {
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:      fmt.Sprintf("%s-%d", j.Name, i),
				Namespace: metav1.NamespaceDefault,
				Labels:    map[string]string{label: j.Name},
			},
			Spec: v1.PodSpec{
				Containers: []v1.Container{{
					Name:      "work",
					Image:     "work",
					Resources: v1.ResourceRequirements{Requests: amounts, Limits: amounts},
				}},
			},
		}
	}
	return pods
}

// Request is what a pod asks for, in GPUs.
func Request(pod *v1.Pod) int {
	sum := int64(0)
	for _, container := range pod.Spec.Containers {
		sum += container.Resources.Requests.Name(GPU, resource.DecimalSI).Value()
	}
	return int(sum)
}

// InParallel calls work for each item, in about their order, and returns the first error.
func InParallel[T any](ctx context.Context, items []T, work func(context.Context, T) error) error {
	const workers = 16
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan T)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for item := range queue {
				if err := work(ctx, item); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, item := range items {
		if ctx.Err() != nil {
			break
		}
		queue <- item
	}
	close(queue)
	group.Wait()
	return context.Cause(ctx)
}

// MakeNodes makes so many nodes and waits until the last one is ready.
func MakeNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	indexes := make([]int, count)
	for i := range indexes {
		indexes[i] = i
	}
	err := InParallel(ctx, indexes, func(ctx context.Context, index int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, Node(index), metav1.CreateOptions{})
		return err
	})
	for err == nil {
		var list *v1.NodeList
		if list, err = client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil && ready(list.Items) == count {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

func ready(nodes []v1.Node) int {
	count := 0
	for _, node := range nodes {
		for _, condition := range node.Status.Conditions {
			if condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue {
				count++
			}
		}
	}
	return count
}

// MakePods makes pods, in about their order.
func MakePods(ctx context.Context, client kubernetes.Interface, pods []*v1.Pod) error {
	return InParallel(ctx, pods, func(ctx context.Context, pod *v1.Pod) error {
		_, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}
