//! Hooks that make clients overlap: waits around every access, lost responses and cut streams.

use std::{sync::Mutex, time::Duration};

use neap_pocket::{
    status::ApiError,
    store::{Access, Event, Flow, HookFuture, Hooks},
};

use super::draw::Draw;

pub(crate) struct DelayingHooks {
    draw: Mutex<Draw>,
    /// The longest wait.
    wait: Duration,
}

impl DelayingHooks {
    pub(crate) fn new(seed: u64, wait: Duration) -> Self {
        Self {
            draw: Mutex::new(Draw::new(seed)),
            wait,
        }
    }

    fn draw<T>(&self, choose: impl FnOnce(&mut Draw) -> T) -> T {
        choose(&mut self.draw.lock().unwrap())
    }

    async fn pause(&self) {
        let micros = self.wait.as_micros() as u64;
        match self.draw(|draw| (draw.below(3), draw.below(micros + 1))) {
            (0, _) => {}
            (1, _) => tokio::task::yield_now().await,
            (_, micros) => tokio::time::sleep(Duration::from_micros(micros)).await,
        }
    }

    /// Waits, then refuses once in `times`.
    async fn refuse_once_in(&self, times: u64) -> Result<(), ApiError> {
        self.pause().await;
        if self.draw(|draw| draw.once_in(times)) {
            return Err(ApiError::internal("the answer was lost"));
        }
        Ok(())
    }
}

impl Hooks for DelayingHooks {
    fn before_read<'a>(&'a self, _: Access<'a>) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(self.refuse_once_in(500))
    }

    fn after_read<'a>(&'a self, _: Access<'a>, _: u64) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(self.refuse_once_in(500))
    }

    fn before_write<'a>(&'a self, _: Access<'a>) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(self.refuse_once_in(200))
    }

    fn after_write<'a>(&'a self, _: Access<'a>, _: u64) -> HookFuture<'a, Result<(), ApiError>> {
        Box::pin(self.refuse_once_in(100))
    }

    fn before_event<'a>(&'a self, _: &'a Event) -> HookFuture<'a, Flow> {
        Box::pin(async {
            if self.draw(|draw| draw.once_in(8)) {
                self.pause().await;
            }
            if self.draw(|draw| draw.once_in(2000)) {
                Flow::Cut
            } else {
                Flow::Deliver
            }
        })
    }
}
