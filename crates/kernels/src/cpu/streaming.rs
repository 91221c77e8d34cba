//! Copies of more memory than the caches hold.
//!
//! An ordinary store loads the cache line that it writes to, and evicts another one. A streaming store does neither, so a copy
//! moves two bytes per byte instead of three. The C library's `memcpy` uses such stores too, but only for sizes that are large
//! compared with the cache size that the processor reports. Virtual machines report that of the whole host: hundreds of MiB.

#![cfg_attr(all(target_arch = "x86_64", not(miri)), expect(unsafe_code, reason = "streaming stores take raw pointers"))]

/// Copies `from` to `to`, bypassing the caches on x86-64. On other architectures, this is `copy_from_slice`.
///
/// This pays if `to` is larger than the caches, or is not read soon: see [`STREAMED_BYTES`].
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// let from = vec![7; 1000];
/// let mut to = vec![0; 1000];
/// brisk_kernels::copy_streaming(&mut to, &from);
/// assert_eq!(to, from);
/// ```
pub fn copy_streaming(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "a copy needs as many bytes as there is room for");
    stream(to, from);
}

/// The minimum size of memory that is written bypassing the caches.
pub const STREAMED_BYTES: usize = 32 << 20;

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn stream(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// Bytes of a cache line. The stores to a line are consecutive, so that it is written as a whole.
    const LINE: usize = 64;
    const VECTOR: usize = size_of::<__m128i>();

    let n_before = to.as_ptr().align_offset(LINE).min(to.len());
    let (to_before, to) = to.split_at_mut(n_before);
    let (from_before, from) = from.split_at(n_before);
    to_before.copy_from_slice(from_before);
    let mut to_lines = to.chunks_exact_mut(LINE);
    let mut from_lines = from.chunks_exact(LINE);
    for (to, from) in to_lines.by_ref().zip(from_lines.by_ref()) {
        // SAFETY: both slices are of `LINE` bytes, which four vectors cover, and `to` is aligned to a line. Every x86-64
        // processor has SSE2.
        unsafe {
            let vectors: [__m128i; LINE / VECTOR] =
                std::array::from_fn(|i| _mm_loadu_si128(from.as_ptr().add(i * VECTOR).cast()));
            for (i, vector) in vectors.into_iter().enumerate() {
                _mm_stream_si128(to.as_mut_ptr().add(i * VECTOR).cast(), vector);
            }
        }
    }
    to_lines.into_remainder().copy_from_slice(from_lines.remainder());
    // Streaming stores are not ordered with other stores of this thread, such as the one that tells another thread that the copy
    // is done.
    // SAFETY: every x86-64 processor has SSE.
    unsafe { _mm_sfence() };
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn stream(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::copy_streaming;

    #[test]
    fn any_range_is_copied_and_nothing_beside_it() {
        let from: Vec<u8> = (0..1000).map(|i| (i % 251) as u8 + 1).collect();
        for start in 0..70 {
            for len in [0, 1, 63, 64, 65, 200, 900] {
                let mut to = vec![0; 1000];
                copy_streaming(&mut to[start..start + len], &from[start / 2..start / 2 + len]);
                assert_eq!(to[start..start + len], from[start / 2..start / 2 + len], "{len} bytes from {start}");
                assert!(to[..start].iter().chain(&to[start + len..]).all(|&byte| byte == 0), "{len} bytes from {start}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "as many bytes")]
    fn lengths_must_agree() {
        copy_streaming(&mut [0; 3], &[0; 4]);
    }
}
