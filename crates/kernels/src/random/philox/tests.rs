use super::*;

/// The known answers published with the generator.
#[test]
fn known_answers() {
    assert_eq!(Philox::new(0).block([0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8], "counter and key of zeros");
    assert_eq!(
        Philox::new(u64::MAX).block([u32::MAX; 4]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        "counter and key of ones"
    );
    assert_eq!(
        Philox::new(0x299f_31d0_a409_3822).block([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        "counter and key of digits of pi"
    );
}

#[test]
fn moments() {
    let philox = Philox::new(7);
    let n = 100_000;
    let uniform: Vec<f64> = (0..n).map(|i| f64::from(philox.uniform(1, i))).collect();
    let mean = uniform.iter().sum::<f64>() / n as f64;
    assert!((mean - 0.5).abs() < 0.005, "uniform mean {mean}");
    assert!(uniform.iter().all(|u| (0.0..1.0).contains(u)), "uniform in [0, 1)");
    let normal: Vec<f64> = (0..n).map(|i| f64::from(philox.normal(2, i))).collect();
    let mean = normal.iter().sum::<f64>() / n as f64;
    let variance = normal.iter().map(|x| x * x).sum::<f64>() / n as f64;
    assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "normal mean {mean}, variance {variance}");
}
