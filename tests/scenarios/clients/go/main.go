// A controller author's use of Kubernetes from Go: client-go's typed clients in protobuf, the apiextensions client, the
// dynamic and metadata clients, server-side apply, informers and leader election. Each step that succeeds prints a line;
// the first that fails ends the program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

const protobuf = "application/vnd.kubernetes.protobuf"

type program struct {
	config     *rest.Config // as the typed clients use it: protobuf
	plain      *rest.Config // of clients that only support JSON
	typed      *kubernetes.Clientset
	extensions *apiextensions.Clientset
	dynamic    *dynamic.DynamicClient
	namespace  string
	widgets    schema.GroupVersionResource
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the platform")
	namespace := flag.String("namespace", "", "to work in")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	p := start(*kubeconfig, *namespace)
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"discovery", p.discovery},
		{"every kind as protobuf", p.everyKind},
		{"typed objects", p.typedObjects},
		{"errors", p.errors},
		{"pages", p.pages},
		{"custom kind", p.customKind},
		{"dynamic objects", p.dynamicObjects},
		{"server-side apply", p.apply},
		{"metadata alone", p.metadataAlone},
		{"informers", p.informers},
		{"leader election", p.election},
		{"custom kind gone", p.customKindGone},
	} {
		if err := step.run(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", step.name, err)
			os.Exit(1)
		}
		fmt.Println("ok:", step.name)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func pointer[T any](value T) *T { return &value }

func start(kubeconfig, namespace string) *program {
	plain := must(clientcmd.BuildConfigFromFlags("", kubeconfig))
	plain.QPS, plain.Burst = 500, 500
	config := rest.CopyConfig(plain)
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+",application/json"
	group := namespace + ".example.org"
	return &program{
		config: config, plain: plain, namespace: namespace,
		typed:      must(kubernetes.NewForConfig(config)),
		extensions: must(apiextensions.NewForConfig(config)),
		dynamic:    must(dynamic.NewForConfig(plain)),
		widgets:    schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"},
	}
}

func (p *program) discovery(context.Context) error {
	groups, lists, err := p.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if len(groups) < 10 || len(lists) < 10 {
		return fmt.Errorf("only %d groups and %d lists", len(groups), len(lists))
	}
	_, err = p.typed.Discovery().OpenAPIV3().Paths()
	return err
}

// everyKind creates, for the time of a dry run, an empty object of every built-in kind and subresource that discovery
// lists. Most are refused as incomplete; none may be refused for its encoding.
func (p *program) everyKind(ctx context.Context) error {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(known); err != nil {
		return err
	}
	lists, err := discovery.ServerPreferredResources(p.typed.Discovery())
	if err != nil {
		return err
	}
	_, all, err := p.typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	sent := 0
	for _, list := range append(lists, all...) {
		version := must(schema.ParseGroupVersion(list.GroupVersion))
		for _, kind := range list.APIResources {
			of := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
			if of.Version == "" {
				of.Group, of.Version = version.Group, version.Version
			}
			object, err := known.New(of)
			if err != nil || !strings.Contains(strings.Join(kind.Verbs, ","), "create") {
				continue // a custom kind, an options kind of a stream, or nothing that is created
			}
			if strings.HasSuffix(kind.Kind, "Options") {
				continue
			}
			object.GetObjectKind().SetGroupVersionKind(of)
			client := must(p.raw(version, known))
			name, sub, _ := strings.Cut(kind.Name, "/")
			request := client.Post().NamespaceIfScoped(p.namespace, kind.Namespaced).Resource(name)
			if sub != "" {
				request = request.Name("none").SubResource(sub)
			}
			var code int
			result := request.Param("dryRun", "All").Body(object).Do(ctx).StatusCode(&code)
			if code == 415 {
				return fmt.Errorf("%s of %s: %d: %v", kind.Name, list.GroupVersion, code, result.Error())
			}
			sent++
		}
	}
	if sent < 30 {
		return fmt.Errorf("only %d kinds were tried", sent)
	}
	return nil
}

func (p *program) raw(version schema.GroupVersion, known *runtime.Scheme) (*rest.RESTClient, error) {
	config := rest.CopyConfig(p.config)
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	return rest.RESTClientFor(config)
}

func (p *program) typedObjects(ctx context.Context) error {
	deployments := p.typed.AppsV1().Deployments(p.namespace)
	labels := map[string]string{"app": "web"}
	wanted := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: pointer(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: pointer(intstr.FromString("10%"))}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "busybox",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"memory": resource.MustParse("64Mi")}},
				}}},
			},
		},
	}
	made, err := deployments.Create(ctx, wanted, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		return err
	}
	if *made.Spec.Replicas != 0 || made.Spec.Strategy.RollingUpdate.MaxSurge.StrVal != "10%" {
		return fmt.Errorf("what was sent came back as %+v", made.Spec)
	}
	found, err := deployments.Get(ctx, "web", metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(found.Spec, made.Spec) {
		return fmt.Errorf("read as %+v: %v", found, err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its controller writes the status meanwhile
		found, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Labels = labels
		_, err = deployments.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"busybox:2"}]}}}}`)
	patched, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil || patched.Spec.Template.Spec.Containers[0].Resources.Requests.Memory().String() != "64Mi" {
		return fmt.Errorf("patched to %+v: %v", patched, err)
	}
	scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas, scale.ResourceVersion = 0, ""
	if _, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: pointer(metav1.DeletePropagationForeground)})
}

func (p *program) errors(ctx context.Context) error {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	first, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	second := first.DeepCopy()
	second.Data["k"] = "2"
	if _, err := maps.Update(ctx, second, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, missing := maps.Get(ctx, "none", metav1.GetOptions{})
	_, there := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{})
	_, old := maps.Update(ctx, first, metav1.UpdateOptions{})
	_, bad := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}, metav1.CreateOptions{})
	for name, as := range map[string]bool{
		"not found": apierrors.IsNotFound(missing), "already exists": apierrors.IsAlreadyExists(there),
		"conflict": apierrors.IsConflict(old), "invalid": apierrors.IsInvalid(bad),
	} {
		if !as {
			return fmt.Errorf("%s is not recognised in: %v; %v; %v; %v", name, missing, there, old, bad)
		}
	}
	return nil
}

func (p *program) pages(ctx context.Context) error {
	secrets := p.typed.CoreV1().Secrets(p.namespace)
	for i := range 7 {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i), Labels: map[string]string{"paged": "yes"}}}
		if _, err := secrets.Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	seen, requests := 0, 0
	all := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		requests++
		return secrets.List(ctx, options)
	})
	all.PageSize = 3
	err := all.EachListItem(ctx, metav1.ListOptions{LabelSelector: "paged=yes"}, func(runtime.Object) error {
		seen++
		return nil
	})
	if err != nil || seen != 7 || requests < 3 {
		return fmt.Errorf("%d secrets in %d pages: %v", seen, requests, err)
	}
	return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "paged=yes"})
}

func (p *program) definition() *apiextensionsv1.CustomResourceDefinition {
	one := apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec := apiextensionsv1.JSONSchemaProps{
		Type:     "object",
		Required: []string{"size"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size":   {Type: "number", Minimum: pointer(0.5), Maximum: pointer(10.0)},
			"colour": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}, Enum: []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}, {Raw: []byte(`"blue"`)}}},
			"parts":  {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &one}, MaxItems: pointer(int64(3))},
			"notes":  {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &one}},
			"free":   {Type: "object", XPreserveUnknownFields: pointer(true)},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.size < 9.0 || self.colour == 'red'", Message: "large ones are red"}},
	}
	whole := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": spec, "status": {Type: "object", XPreserveUnknownFields: pointer(true)},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + p.widgets.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: p.widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

func (p *program) customKind(ctx context.Context) error {
	definitions := p.extensions.ApiextensionsV1().CustomResourceDefinitions()
	wanted := p.definition()
	made, err := definitions.Create(ctx, wanted, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(made.Spec.Versions[0].Schema, wanted.Spec.Versions[0].Schema) {
		return fmt.Errorf("the schema came back as %+v", made.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
	changes, err := definitions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + wanted.Name})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if crd, is := change.Object.(*apiextensionsv1.CustomResourceDefinition); is && established(crd) {
			break
		}
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		latest, err := definitions.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		latest.Spec.Names.ShortNames = []string{"wdg"}
		updated, err := definitions.Update(ctx, latest, metav1.UpdateOptions{})
		if err == nil && len(updated.Spec.Names.ShortNames) != 1 {
			return fmt.Errorf("updated to %+v", updated)
		}
		return err
	})
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := p.dynamic.Resource(p.widgets).Namespace(p.namespace).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

func (p *program) widget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": p.widgets.GroupVersion().String(), "kind": "Widget",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func (p *program) dynamicObjects(ctx context.Context) error {
	widgets := p.dynamic.Resource(p.widgets).Namespace(p.namespace)
	made, err := widgets.Create(ctx, p.widget("w", map[string]any{"size": 1.5}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if colour, _, _ := unstructured.NestedString(made.Object, "spec", "colour"); colour != "red" {
		return fmt.Errorf("the default is missing in %v", made.Object)
	}
	_, err = widgets.Create(ctx, p.widget("x", map[string]any{"size": 9.5, "colour": "blue"}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "large ones are red") {
		return fmt.Errorf("the rule did not hold: %v", err)
	}
	_ = unstructured.SetNestedField(made.Object, "Ready", "status", "phase")
	reported, err := widgets.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if phase, _, _ := unstructured.NestedString(reported.Object, "status", "phase"); phase != "Ready" {
		return fmt.Errorf("the status is %v", reported.Object["status"])
	}
	return nil
}

func (p *program) apply(ctx context.Context) error {
	maps := p.typed.CoreV1().ConfigMaps(p.namespace)
	wanted := applycorev1.ConfigMap("applied", p.namespace).WithData(map[string]string{"a": "1", "b": "1"})
	if _, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		return err
	}
	other := applycorev1.ConfigMap("applied", p.namespace).WithData(map[string]string{"a": "2"})
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
		return fmt.Errorf("another owner's field was taken: %v", err)
	}
	if _, err := maps.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second", Force: true}); err != nil {
		return err
	}
	less := applycorev1.ConfigMap("applied", p.namespace).WithData(map[string]string{"c": "1"})
	found, err := maps.Apply(ctx, less, metav1.ApplyOptions{FieldManager: "first"})
	if err != nil || !reflect.DeepEqual(found.Data, map[string]string{"a": "2", "c": "1"}) {
		return fmt.Errorf("applied to %+v: %v", found, err)
	}
	widgets := p.dynamic.Resource(p.widgets).Namespace(p.namespace)
	applied, err := widgets.Apply(ctx, "w", p.widget("w", map[string]any{"size": 2.5, "parts": []any{"lid"}}), metav1.ApplyOptions{FieldManager: "first", Force: true})
	if err != nil || len(applied.GetManagedFields()) < 2 {
		return fmt.Errorf("applied to %v: %v", applied, err)
	}
	return nil
}

func (p *program) metadataAlone(ctx context.Context) error {
	client, err := metadata.NewForConfig(p.config)
	if err != nil {
		return err
	}
	for _, resource := range []schema.GroupVersionResource{p.widgets, {Version: "v1", Resource: "configmaps"}} {
		list, err := client.Resource(resource).Namespace(p.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("%s: %d items: %v", resource.Resource, len(list.Items), err)
		}
	}
	return nil
}

func (p *program) informers(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	typed := informers.NewSharedInformerFactoryWithOptions(p.typed, 0, informers.WithNamespace(p.namespace))
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(p.dynamic, 0, p.namespace, nil)
	for name, informer := range map[string]cache.SharedIndexInformer{
		"typed": typed.Core().V1().ConfigMaps().Informer(), "dynamic": custom.ForResource(p.widgets).Informer(),
	} {
		seen := make(chan string, 100)
		note := func(event watch.EventType, object any) {
			if o, is := object.(metav1.Object); is && o.GetName() == "watched" {
				seen <- string(event)
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { note(watch.Added, o) },
			UpdateFunc: func(_, o any) { note(watch.Modified, o) },
			DeleteFunc: func(o any) { note(watch.Deleted, o) },
		})
		if err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("the %s informer does not sync", name)
		}
		resource := p.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "watched"},
		}}
		if name == "dynamic" {
			resource, object = p.dynamic.Resource(p.widgets), p.widget("watched", map[string]any{"size": 1.0})
		}
		objects := resource.Namespace(p.namespace)
		if _, err := objects.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		patch := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
		if _, err := objects.Patch(ctx, "watched", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		if err := objects.Delete(ctx, "watched", metav1.DeleteOptions{}); err != nil {
			return err
		}
		for _, wanted := range []string{"ADDED", "MODIFIED", "DELETED"} {
			select {
			case found := <-seen:
				if found != wanted {
					return fmt.Errorf("the %s informer reports %s for %s", name, found, wanted)
				}
			case <-ctx.Done():
				return fmt.Errorf("the %s informer does not report %s", name, wanted)
			}
		}
	}
	return nil
}

func (p *program) election(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	led := false
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: p.namespace},
		Client:     p.typed.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 60 * time.Second, RenewDeadline: 40 * time.Second, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led = true; cancel() },
			OnStoppedLeading: func() {},
		},
	})
	if !led {
		return fmt.Errorf("never elected")
	}
	return nil
}

func (p *program) customKindGone(ctx context.Context) error {
	definitions := p.extensions.ApiextensionsV1().CustomResourceDefinitions()
	name := "widgets." + p.widgets.Group
	if err := definitions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := definitions.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}
