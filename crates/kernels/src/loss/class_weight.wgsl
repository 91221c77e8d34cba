// Part: the weight of a class. Expects CLASS_WEIGHTS and the binding `class_weights`.

fn class_weight(col: u32) -> f32 {
    if CLASS_WEIGHTS == 1u {
        return class_weights[col];
    }
    return 1.0;
}
