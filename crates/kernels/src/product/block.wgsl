// Part: blocks of 4 by 4 of an operand. Expects `TILE`, the type in which tiles hold operands.

// Four rows of a, or four columns of b, at four K indices.
struct Block {
    at0: TILE,
    at1: TILE,
    at2: TILE,
    at3: TILE,
}

// A block from four lines along K.
fn transposed(lines: Block) -> Block {
    return Block(
        TILE(lines.at0.x, lines.at1.x, lines.at2.x, lines.at3.x),
        TILE(lines.at0.y, lines.at1.y, lines.at2.y, lines.at3.y),
        TILE(lines.at0.z, lines.at1.z, lines.at2.z, lines.at3.z),
        TILE(lines.at0.w, lines.at1.w, lines.at2.w, lines.at3.w),
    );
}
