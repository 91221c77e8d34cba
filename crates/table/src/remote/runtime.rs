use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::retry::{POLL, Wait};

/// The thread on which requests run, so that callers are blocking functions, also within an asynchronous program.
#[derive(Debug)]
pub(super) struct Runtime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Runtime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().thread_name("brisk-table request").build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("brisk-table remote".to_owned()).spawn(move || {
            // An error means that the sender is gone, which also ends the thread.
            _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for the result of a future, and calls `meanwhile` about ten times a second; `None` if the wait is over before.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        wait: &Wait<'_>,
        future: impl Future<Output = T> + Send + 'static,
        mut meanwhile: impl FnMut(),
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let request = self.handle.spawn(async move { _ = sender.send(future.await) });
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) if wait.is_over() => {
                    request.abort();
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => {
                    unreachable!("the runtime lives as long as this value, and requests do not panic")
                }
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}
