use brisk_train::{DataParallel, Error};

/// Sends a text of each replica to all of them; returns the texts by rank.
pub(crate) fn gather(replicas: &DataParallel, mine: &str) -> Result<Vec<String>, Error> {
    // Every byte is represented exactly as an f32.
    let lens = replicas.all_gather(vec![mine.len() as f32])?;
    let most = lens.iter().fold(1.0_f32, |most, len| most.max(*len)) as usize;
    let mut bytes: Vec<f32> = mine.bytes().map(f32::from).collect();
    bytes.resize(most, 0.0);
    let all = replicas.all_gather(bytes)?;
    let text = |(bytes, len): (&[f32], &f32)| {
        let bytes: Vec<u8> = bytes[..*len as usize].iter().map(|byte| *byte as u8).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Ok(all.chunks_exact(most).zip(&lens).map(text).collect())
}
