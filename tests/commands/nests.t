SPDX-License-Identifier: Apache-2.0

fusec nests prints the legal nests of a segment. The sixth line has the fastest one, after what is chosen; a plan takes it.

    $ fusec nests examples/graphs/softmax.fuse --count 1
    graph softmax for h200, estimated at the hints B = 37

    segment 0, ends at %7 div: kernel 01cc6a045b695722
           us  choices
         3.51  {nest = r:grid c:serial c:warp32 c:lane32 c:vector4, register_cache = 32}, which is chosen
         3.18  {nest = r:grid c:serial c:cluster4 c:warp8 c:lane32 c:vector4, online_softmax, shared_cache = 1024}
    12384 legal nests of 1216 structures were tried
    a search finds {nest = r:grid c:serial c:cluster4 c:warp8 c:lane32 c:vector4, online_softmax, shared_cache = 1024}, 3.18 us: 4 of 6 loops are left, which can be bound in 32 of 512 ways; 3 designs examined, proven to be enough
    $ nest=$(fusec nests examples/graphs/softmax.fuse --count 1 | sed -n '6s/^ *[0-9.]*  //p')
    $ fusec plan examples/graphs/softmax.fuse --versions 1 --decisions - | sed "s/^\(kernel [0-9a-f]*\) .*/\1 $nest/" >decisions
    $ fusec plan examples/graphs/softmax.fuse --use-decisions decisions | grep -oF "choices $nest"
    choices {nest = r:grid c:serial c:cluster4 c:warp8 c:lane32 c:vector4, online_softmax, shared_cache = 1024}
    $ fusec nests examples/graphs/transformer_block.fuse --segment 2 --count 0 --profile tiny3
    build 0 of 2, for all other dims; 29% of the cells
    graph transformer_block for tiny3, estimated at the hints B = 2

    segment 2, ends at %64 transpose: kernel 4d2e5729b4f45622
           us  choices
         4.48  {nest = r:grid r:warp8 r:lane32 r:vector2}, which is chosen
    16 legal nests of 8 structures were tried
    a search finds nothing faster: 12 of 12 loops are left, which can be bound in 16777216 of 16777216 ways; 0 designs examined, proven to be enough
    $ fusec nests examples/graphs/softmax.fuse --segment 1
    error: --segment 1: the graph has 1 segment, 0
      hint: fusec plan prints their numbers
    [2]
