//! Ports of pods on this machine.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Stdio},
    thread,
};

use crate::cluster::Cluster;

/// A `kubectl port-forward`, and the port that it listens on.
struct Forward {
    kubectl: Child,
    port: u16,
}

impl Forward {
    fn to(cluster: &Cluster, what: &str) -> Self {
        let mut command = cluster.command(&format!("port-forward {what}"));
        let mut kubectl = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(kubectl.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port = line.strip_prefix("Forwarding from 127.0.0.1:").unwrap();
        let port = port.split(' ').next().unwrap().parse().unwrap();
        // It says something for each connection, to somebody who listens.
        thread::spawn(move || said.read_to_end(&mut Vec::new()));
        Self { kubectl, port }
    }

    fn ask(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Forward {
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
fn a_port_of_a_pod_answers_on_this_machine() {
    let Some(cluster) = Cluster::up("a_port_of_a_pod_answers_on_this_machine", &[]) else {
        return;
    };
    cluster.file("web.yaml", WEB);
    cluster.ok("apply -f web.yaml");
    cluster.ok("wait pod/web --for=condition=Ready --timeout=60s");
    let forward = Forward::to(&cluster, "pod/web :8080");
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = forward.ask();
                assert!(answer.contains("hello from web"), "{answer}");
            });
        }
    });
    let nowhere = Forward::to(&cluster, "pod/web :9");
    let mut stream = TcpStream::connect(("127.0.0.1", nowhere.port)).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "nobody is there");
}
