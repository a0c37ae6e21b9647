//! `port-forward` to pods.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
    thread,
};

use super::kubectl_cluster::KubectlCluster;

/// A running `kubectl port-forward`, and its local port.
struct PortForward {
    kubectl: Child,
    port: u16,
}

impl PortForward {
    fn to(cluster: &KubectlCluster, what: &str) -> Self {
        let mut command = cluster.command(&format!("port-forward {what}"));
        let mut kubectl = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(kubectl.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let port = line.strip_prefix("Forwarding from 127.0.0.1:").unwrap();
        let port = port.split(' ').next().unwrap().parse().unwrap();
        // kubectl prints a line per connection, so its output must be drained.
        thread::spawn(move || output.read_to_end(&mut Vec::new()));
        Self { kubectl, port }
    }

    fn get(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for PortForward {
    fn drop(&mut self) {
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}

const WEB: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: web
      image: neaptide/neap
      args: [sample, serve]
      readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
";

#[test]
fn a_forwarded_port_reaches_the_pod() {
    let Some(cluster) = KubectlCluster::up("a_forwarded_port_reaches_the_pod", &[]) else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.ok("apply -f web.yaml");
    cluster.ok("wait pod/web --for=condition=Ready --timeout=60s");
    let forward = PortForward::to(&cluster, "pod/web :8080");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = forward.get();
                assert!(answer.contains("hello from web"), "{answer}");
            });
        }
    });
    let nowhere = PortForward::to(&cluster, "pod/web :9");
    let mut stream = TcpStream::connect(("127.0.0.1", nowhere.port)).unwrap();
    assert_eq!(
        stream.read(&mut [0]).unwrap_or(0),
        0,
        "no process listens there"
    );
}
