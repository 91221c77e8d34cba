//! One thread reads and cuts the text, several parse, and the caller takes the results in order.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::chunks::{Chunk, ChunkError, Chunks};

/// A chunk and the result of parsing it. A fixed number of these are reused in turn, which bounds the memory and holds back the
/// reader.
struct Slot<P> {
    chunk: Chunk,
    parsed: P,
}

enum Message<P> {
    Parsed(u64, Box<Slot<P>>),
    Failed(u64, ChunkError),
    /// A thread is unwinding; its chunk will never arrive.
    Panicked,
}

/// Calls `parse` for every chunk on `n_threads` threads, to store the result in a value that `new` made and that may have been
/// used before. `take` is called on this thread for one chunk after the other, in order; its first error ends everything.
pub(crate) fn parse_in_order<P: Send, E>(
    chunks: Chunks<impl Read + Send>,
    n_threads: usize,
    new: impl Fn() -> P,
    parse: impl Fn(&Chunk, &mut P) + Sync,
    mut take: impl FnMut(Result<&mut P, ChunkError>) -> Result<(), E>,
) -> Result<(), E> {
    let (to_workers, jobs) = channel::<(u64, Box<Slot<P>>)>();
    let (messages_in, messages) = channel();
    let (give_back, free_slots) = channel();
    for _ in 0..2 * n_threads + 2 {
        let slot = Slot { chunk: Chunk::default(), parsed: new() };
        give_back.send(Box::new(slot)).expect("the other end is below");
    }
    let jobs = Mutex::new(jobs);

    thread::scope(|scope| {
        // Dropped with this closure, however it ends, so that the reader does not wait for a slot that will not be returned.
        let give_back = give_back;
        let failures = messages_in.clone();
        scope.spawn(move || {
            let (mut chunks, failures) = (chunks, OnPanic(failures));
            let mut number = 0;
            // This loop ends once the caller has stopped taking chunks.
            while let Ok(mut slot) = free_slots.recv() {
                match chunks.next_into(&mut slot.chunk) {
                    Ok(true) => _ = to_workers.send((number, slot)),
                    Ok(false) => break,
                    Err(error) => {
                        _ = failures.0.send(Message::Failed(number, error));
                        break;
                    }
                }
                number += 1;
            }
        });
        for _ in 0..n_threads {
            let (jobs, parse, results) = (&jobs, &parse, OnPanic(messages_in.clone()));
            scope.spawn(move || {
                while let Ok((number, mut slot)) = next(jobs) {
                    parse(&slot.chunk, &mut slot.parsed);
                    if results.0.send(Message::Parsed(number, slot)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(messages_in);

        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for message in messages {
            let number = match &message {
                Message::Parsed(number, _) | Message::Failed(number, _) => *number,
                Message::Panicked => break,
            };
            early.insert(number, message);
            while let Some(message) = early.remove(&wanted) {
                wanted += 1;
                match message {
                    Message::Parsed(_, mut slot) => {
                        take(Ok(&mut slot.parsed))?;
                        // An error means that the reader has ended.
                        _ = give_back.send(slot);
                    }
                    Message::Failed(_, error) => take(Err(error))?,
                    Message::Panicked => unreachable!("it was handled above"),
                }
            }
        }
        Ok(())
    })
}

/// Waits for work with the lock held, so that one worker waits for work and the others wait for the lock.
fn next<T>(jobs: &Mutex<std::sync::mpsc::Receiver<T>>) -> Result<T, std::sync::mpsc::RecvError> {
    jobs.lock().expect("nothing panics while it holds this lock").recv()
}

/// Tells the receiver that a thread is unwinding, so that it does not wait forever; the scope then propagates the panic.
struct OnPanic<P>(Sender<Message<P>>);

impl<P> Drop for OnPanic<P> {
    fn drop(&mut self) {
        if thread::panicking() {
            _ = self.0.send(Message::Panicked);
        }
    }
}
