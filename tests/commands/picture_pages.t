SPDX-License-Identifier: Apache-2.0

The pictures of docs/plots that graphviz drew are of today (./dev report): each label and each edge that plan --dot writes
stands in them. What does not is shown. The version of graphviz does not count.

    $ labels() { grep -v 'style=invis' "$1" | grep -oE 'label="([^"\\]|\\.)*"' | sed 's/^label="//; s/"$//; s/\\[nl]/\n/g' | sed '/^$/d'; }
    $ edges() { grep -v 'style=invis' "$1" | sed -nE 's/^  ([a-z0-9_]+) -> ([a-z0-9_]+) \[.*/\1->\2/p'; }
    $ drawn() {
    >   sed -nE 's/^<text [^>]*>(.*)<\/text>/\1/p; s/^<title>(.*)<\/title>/\1/p' "docs/plots/stitch_$1.svg" |
    >     sed 's/&#45;/-/g; s/&gt;/>/g; s/&#160;/ /g'
    > }
    $ not_drawn() { { labels "$1.dot"; edges "$1.dot"; } | grep -vFx -f <(drawn "$1"); }
    $ fusec plan examples/graphs/softmax.fuse --dot softmax.dot
    wrote softmax.dot
    $ not_drawn softmax
    [1]
    $ fusec plan examples/graphs/layer_norm_backward.fuse --dot layer_norm_backward.dot
    wrote layer_norm_backward.dot
    $ not_drawn layer_norm_backward
    [1]
    $ fusec plan tests/papers/astitch_fig7.fuse --schemes=astitch --profile v100 --dot astitch_fig7.dot
    wrote astitch_fig7.dot
    $ not_drawn astitch_fig7
    [1]

What is compared is not empty.

    $ edges softmax.dot | grep -c .
    11
    $ labels softmax.dot | grep -c .
    26
    $ drawn softmax | grep -c .
    63
