// Package kinds registers the Go types of every kind that Neaptide may be sent in protobuf.
package kinds

import (
	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Scheme knows the stable versions of the groups a Kubernetes server has.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme,
		authorization.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme,
		discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme, networking.AddToScheme,
		node.AddToScheme, policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme,
		scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
	}
	return scheme, builder.AddToScheme(scheme)
}
