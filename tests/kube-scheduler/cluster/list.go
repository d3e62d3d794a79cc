package cluster

import (
	"context"
	"encoding/json"

	"k8s.io/client-go/kubernetes"
)

// List is what `kubectl get nodes,pods -A -o json` prints, on one line.
func List(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	items := []any{}
	for _, kind := range []struct{ path, name string }{{"/api/v1/nodes", "Node"}, {"/api/v1/pods", "Pod"}} {
		request := client.CoreV1().RESTClient().Get().AbsPath(kind.path).SetHeader("Accept", "application/json")
		text, err := request.DoRaw(ctx)
		if err != nil {
			return nil, err
		}
		var list struct{ Items []map[string]any }
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			item["apiVersion"], item["kind"] = "v1", kind.name
			if metadata, ok := item["metadata"].(map[string]any); ok {
				delete(metadata, "managedFields")
			}
			items = append(items, item)
		}
	}
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"resourceVersion": ""},
	})
}
