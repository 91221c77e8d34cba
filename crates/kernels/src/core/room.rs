//! Working memory of a task, kept per thread: a new allocation of this size would map new pages each time.

use std::cell::RefCell;

/// The maximum number of floats of a buffer that is kept.
const KEPT_LEN: usize = 1024 * 1024;

thread_local! {
    /// The buffers that are not in use: as many as calls have been nested.
    static ROOMS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with memory for `len` floats, whose values are unspecified. Calls may be nested.
#[inline(always)]
pub(crate) fn with_room<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut room = take(len);
    let result = f(&mut room[..len]);
    give_back(room);
    result
}

fn take(len: usize) -> Vec<f32> {
    let mut room = ROOMS.with_borrow_mut(Vec::pop).unwrap_or_default();
    if room.len() < len {
        room.resize(len, 0.0);
    }
    room
}

fn give_back(room: Vec<f32>) {
    if room.len() <= KEPT_LEN {
        ROOMS.with_borrow_mut(|rooms| rooms.push(room));
    }
}
