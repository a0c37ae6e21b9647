use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use neap_pocket::environment::BoxFuture;
use parking_lot::Mutex;

use super::*;

/// A clock that advances by seven milliseconds per reading.
struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.0.fetch_add(7, Ordering::Relaxed)).unwrap()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<()> {
        Box::pin(async {})
    }
}

#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn transcript_has_steps_times_and_next_steps() {
    let buffer = SharedBuffer::default();
    let clock = Arc::new(TickingClock(AtomicI64::new(0)));
    let mut transcript = Transcript::on(Box::new(buffer.clone()), clock, Symbols::UNICODE);
    transcript.done("store", "in memory");
    transcript.done("api", "https://127.0.0.1:6443");
    transcript.ready(Path::new("/tmp/neap-1/kubeconfig"), "Ctrl-C");
    let text = String::from_utf8(buffer.0.lock().clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with("Kubernetes API v1.36 in this process"));
    assert!(lines[1].starts_with(" ✓ store        in memory"));
    assert!(lines[1].ends_with(" 7 ms"));
    assert!(lines[2].starts_with(" ✓ api          https://127.0.0.1:6443"));
    assert_eq!(lines[3], "Ready in 21 ms.");
    assert_eq!(
        lines[4],
        "  kubectl  export KUBECONFIG=/tmp/neap-1/kubeconfig"
    );
}

#[test]
fn durations_are_human_readable() {
    for (millis, text) in [
        (-3, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (12_345, "12.3 s"),
    ] {
        assert_eq!(format_duration(SignedDuration::from_millis(millis)), text);
    }
}
