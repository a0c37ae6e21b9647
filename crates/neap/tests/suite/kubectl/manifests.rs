//! Manifests that several tests use.

/// A Deployment with lists that are merged by key.
pub(crate) const WEB: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example.com/web:1
        env: [{name: A, value: '1'}, {name: B, value: '2'}]
        ports: [{name: http, containerPort: 80}, {name: metrics, containerPort: 90}]
      - name: side
        image: example.com/side:1
";

/// A later version of [`WEB`]: an image, a variable and a label changed, a variable added, and a
/// variable, a port and a container removed.
pub(crate) const WEB_LATER: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, tier: back}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example.com/web:2
        env: [{name: B, value: '3'}, {name: C, value: '4'}]
        ports: [{name: http, containerPort: 80}]
";

/// A definition with all features that kubectl uses.
pub(crate) const BOATS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example}
spec:
  group: harbour.example
  names: {kind: Boat, plural: boats, singular: boat, shortNames: [bt], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Berth, type: string, jsonPath: .spec.berth}
    - {name: Masts, type: integer, jsonPath: .spec.masts, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.crew
        statusReplicasPath: .status.crew
        labelSelectorPath: .status.selector
    schema:
      openAPIV3Schema:
        type: object
        description: A boat that lies in the harbour.
        properties:
          spec:
            type: object
            description: What is wanted of the boat.
            required: [berth]
            properties:
              berth: {type: string, description: Where it lies., minLength: 2}
              masts: {type: integer, default: 1, minimum: 0}
              crew: {type: integer}
              cargo:
                type: array
                items: {type: object, properties: {name: {type: string}, tons: {type: integer}}}
          status:
            type: object
            properties:
              crew: {type: integer}
              selector: {type: string}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
";

/// A custom resource of [`BOATS`].
pub(crate) const TERN: &str = r"
apiVersion: harbour.example/v1
kind: Boat
metadata: {name: tern}
spec: {berth: B7, crew: 2}
";
