package main

import (
	"fmt"
	"math/rand/v2"

	"kubescheduler/cluster"
)

// Workload is a stream of jobs that depends on its seed alone.
type workload struct {
	random *rand.Rand
	made   int
}

func newWorkload(seed uint64) *workload {
	return &workload{random: rand.New(rand.NewPCG(seed, 0))}
}

// Next is mostly a pod of its own, at times a gang. Two in three of all GPUs are asked for by gangs.
func (w *workload) next() cluster.Job {
	name := fmt.Sprintf("job-%05d", w.made)
	w.made++
	switch draw := w.random.IntN(100); {
	case draw < 50:
		return cluster.Job{Name: name, Pods: 1, GPUsPerPod: 1}
	case draw < 65:
		return cluster.Job{Name: name, Pods: 1, GPUsPerPod: 2}
	case draw < 80:
		return cluster.Job{Name: name, Pods: 1, GPUsPerPod: 4}
	case draw < 88:
		return cluster.Job{Name: name, Pods: 1, GPUsPerPod: 8}
	default:
		gpus := []int{4, 8}[w.random.IntN(2)]
		return cluster.Job{Name: name, Pods: 2 + w.random.IntN(15), GPUsPerPod: gpus}
	}
}

// Fill is the jobs that come next, as long as they fit into so many GPUs by their number.
func (w *workload) fill(gpus int) []cluster.Job {
	var jobs []cluster.Job
	for {
		job := w.next()
		if gpus -= job.GPUs(); gpus < 0 {
			return jobs
		}
		jobs = append(jobs, job)
	}
}

// Split draws which jobs end: each with so many chances in a hundred.
func (w *workload) split(jobs []cluster.Job, percent int) (ended, left []cluster.Job) {
	for _, job := range jobs {
		if w.random.IntN(100) < percent {
			ended = append(ended, job)
		} else {
			left = append(left, job)
		}
	}
	return ended, left
}
