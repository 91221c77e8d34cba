// Part: products of blocks of 4 by 4, rows of a by columns of b.

// sum + b a, added in the order of k.
fn add_product(sum: mat4x4f, b: mat4x4f, a: mat4x4f) -> mat4x4f {
    return mat4x4f(
        fma(vec4f(a[0].w), b[3], fma(vec4f(a[0].z), b[2], fma(vec4f(a[0].y), b[1], fma(vec4f(a[0].x), b[0], sum[0])))),
        fma(vec4f(a[1].w), b[3], fma(vec4f(a[1].z), b[2], fma(vec4f(a[1].y), b[1], fma(vec4f(a[1].x), b[0], sum[1])))),
        fma(vec4f(a[2].w), b[3], fma(vec4f(a[2].z), b[2], fma(vec4f(a[2].y), b[1], fma(vec4f(a[2].x), b[0], sum[2])))),
        fma(vec4f(a[3].w), b[3], fma(vec4f(a[3].z), b[2], fma(vec4f(a[3].y), b[1], fma(vec4f(a[3].x), b[0], sum[3])))),
    );
}
