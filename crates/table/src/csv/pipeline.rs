//! One thread reads and cuts, some parse, and the caller takes what they made, in order.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::chunks::{Chunk, ChunkError, Chunks};

/// A chunk and what becomes of it. There are a fixed number of these, which go round: that bounds the memory, and holds back the reader.
struct Slot<P> {
    chunk: Chunk,
    parsed: P,
}

enum Message<P> {
    Parsed(u64, Box<Slot<P>>),
    Failed(u64, ChunkError),
    /// A thread is unwinding; nothing more will come of waiting for its chunk.
    Panicked,
}

/// Calls `parse` for every chunk on `n_threads` threads, to make of something that `new` made, and that may have been used before, what the
/// chunk says. `take` is called on this thread, chunk after chunk; its first error ends everything.
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
        // Goes with this closure, however it ends: the reader then waits for no slot that nobody gives back.
        let give_back = give_back;
        let failures = messages_in.clone();
        scope.spawn(move || {
            let (mut chunks, failures) = (chunks, OnPanic(failures));
            let mut number = 0;
            // No slot comes any more once the taker has given up.
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
                        // The reader has ended if nobody takes it.
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

/// Waits for work with the lock held, so that one worker waits and the others queue behind it.
fn next<T>(jobs: &Mutex<std::sync::mpsc::Receiver<T>>) -> Result<T, std::sync::mpsc::RecvError> {
    jobs.lock().expect("nothing panics while it holds this lock").recv()
}

/// Tells the taker when a thread unwinds, so that it does not wait for ever; the scope then passes the panic on.
struct OnPanic<P>(Sender<Message<P>>);

impl<P> Drop for OnPanic<P> {
    fn drop(&mut self) {
        if thread::panicking() {
            _ = self.0.send(Message::Panicked);
        }
    }
}
