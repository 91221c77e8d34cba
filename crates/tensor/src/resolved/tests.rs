use brisk_kernels::{Adapter, AdapterKind, CoopShape};

use crate::graph::autocast::Precision;

/// Checks the text for f16 on an adapter, and for the other precisions, in which nothing is added in f16.
#[track_caller]
fn check(kind: AdapterKind, coop: Option<CoopShape>, f16_accumulation: bool, expected: &str) {
    let adapter = Adapter::new("sample", kind)
        .with_features(CoopShape::FEATURES)
        .with_subgroups([32; 2])
        .with_coop(coop)
        .with_f16_accumulation(f16_accumulation);
    let said = |precision: Precision| precision.resolved_on(Some(&adapter)).to_string();
    assert_eq!(said(Precision::F16), format!("stored in f16, computed in f32, converted by instructions{expected}"));
    assert_eq!(said(Precision::Bf16), "stored in bf16, computed in f32, converted by bits");
    assert_eq!(said(Precision::F32), "stored in f32, computed in f32");
}

#[test]
fn what_adds_in_f16_is_said() {
    use AdapterKind::{Hardware, Software};
    check(Hardware, None, false, "");
    check(Software, None, true, "");
    check(Software, Some(CoopShape::Eight), false, "");
    check(Hardware, None, true, ", products accumulated in f16 over 16 elements of K at a time");
    check(Hardware, Some(CoopShape::Sixteen), false, ", products on tensor cores by matrices of 16 by 16");
    let both =
        ", products on tensor cores by matrices of 16 by 16, other products accumulated in f16 over 16 elements of K at a time";
    check(Hardware, Some(CoopShape::Sixteen), true, both);
}
