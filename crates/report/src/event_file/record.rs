//! The framing of records: length, checksum of the length, event, checksum of the event.

use prost::Message as _;

use super::crc32c::crc32c;
use super::message::Event;

/// The bytes of a record.
pub(super) fn framed(event: &Event) -> Vec<u8> {
    let event = event.encode_to_vec();
    let length = (event.len() as u64).to_le_bytes();
    [&length[..], &masked_checksum(&length), &event, &masked_checksum(&event)].concat()
}

/// The CRC-32C, rotated and shifted as TensorFlow does, since the checksum of bytes that contain their own checksum says little.
fn masked_checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::framed;
    use crate::event_file::message::{Event, Summary, Value};

    /// The bytes that TensorBoard 2.21.0's own writer produces for the same events.
    #[test]
    fn records_are_those_of_tensorboard() {
        let version = Event { wall_time: 1.5, file_version: Some("brain.Event:2".to_owned()), ..Event::default() };
        assert_eq!(
            hex(&framed(&version)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c",
            "the first record"
        );
        let value = Value { tag: "loss".to_owned(), simple_value: Some(0.25), ..Value::default() };
        let scalar = Event { wall_time: 2.5, step: 300, summary: Some(Summary { value: vec![value] }), ..Event::default() };
        assert_eq!(
            hex(&framed(&scalar)),
            "1b000000000000001a0d9e1309000000000000044010ac022a0d0a0b0a046c6f7373150000803e205d3896",
            "a scalar"
        );
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
