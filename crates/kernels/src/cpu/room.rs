//! Working memory of a task, kept per thread: a new allocation of this size would map new pages each time.

use std::cell::RefCell;

use crate::aligned::{LINE_LEN, aligned_mut};
use crate::storage::element::{Element, narrow, widen};
use crate::vectorised::{inlined, vectorised};

/// The maximum number of floats of a buffer that is kept.
const KEPT_LEN: usize = 1024 * 1024;

thread_local! {
    /// The buffers that are not in use: as many as calls have been nested.
    static ROOMS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with memory for `len` floats that start on a cache line, whose values are unspecified. Calls may be nested.
#[inline(always)]
pub(crate) fn with_room<R>(len: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut room = take(len + LINE_LEN);
    let result = f(&mut aligned_mut(&mut room)[..len]);
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

/// Calls `f` with the values of `x` in f32: `x` itself if it is f32.
#[inline(always)]
pub(crate) fn read_in_f32<X: Element>(x: &[X], f: impl FnOnce(&[f32])) {
    match X::as_f32(x) {
        Some(x) => f(x),
        None => with_room(
            x.len(),
            inlined!(|room| {
                widen(x, room);
                f(room);
            }),
        ),
    }
}

/// Calls `f` with memory for the values of `y` in f32: `y` itself if it is f32, else memory that is afterwards rounded into it.
#[inline(always)]
pub(crate) fn in_f32<Y: Element>(y: &mut [Y], f: impl FnOnce(&mut [f32])) {
    match Y::as_f32_mut(y) {
        Some(y) => f(y),
        None => with_room(
            y.len(),
            inlined!(|room| {
                f(room);
                vectorised(inlined!(|| narrow(room, y)));
            }),
        ),
    }
}
