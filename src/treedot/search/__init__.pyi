from treedot.search.clusters import Clusters as Clusters
from treedot.search.clusters import cluster_trees as cluster_trees
from treedot.search.comparison import Comparison as Comparison
from treedot.search.comparison import compare as compare
from treedot.search.index.tree_index import TreeIndex as TreeIndex
from treedot.search.neighbours import nearest as nearest
from treedot.search.tree_edit_distance import align as align
from treedot.search.tree_edit_distance import edit_distance as edit_distance
