SPDX-License-Identifier: Apache-2.0

needs: dot

Graphviz draws what plan --dot writes, and has nothing to say.

    $ draw() { fusec plan "$@" --dot picture.dot >/dev/null && dot -Tsvg picture.dot | tail -n 1; }
    $ draw examples/graphs/softmax.fuse
    </svg>
    $ draw examples/graphs/layer_norm_backward.fuse
    </svg>
    $ draw examples/graphs/bert_layer.fuse
    </svg>
    $ draw examples/graphs/softmax.fuse --baseline=xla
    </svg>
