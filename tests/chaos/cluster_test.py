"""How a cluster is made well again, with servers that do nothing."""
import unittest
from unittest import mock

import cluster
from cluster import Cluster
from patroni import PatroniCluster


class AStandby(unittest.TestCase):
    def mend(self, streams, kind=Cluster, is_synchronous=True):
        """Whether the standby was built anew. `streams`: of each look, whether it streams."""
        self.cluster = kind.__new__(kind)
        self.cluster.is_synchronous, self.cluster.history = is_synchronous, mock.Mock()
        self.cluster.primary = mock.Mock(has_standby=mock.Mock(side_effect=streams))
        self.cluster.standby = mock.Mock()
        with mock.patch.object(cluster, "STANDBY_PATIENCE_S", 0):
            self.cluster.mend_standby()
        return self.cluster.standby.copy_from.called

    def test_that_streams_stays(self):
        self.assertFalse(self.mend([True]))
        self.cluster.history.write.assert_not_called()

    def test_that_does_not_stream_is_built_anew(self):
        self.assertTrue(self.mend([False, True, True]))
        self.cluster.standby.stop.assert_called_with("immediate")
        self.cluster.primary.configure.assert_called_with(True)
        self.assertEqual(self.cluster.history.write.call_args[0], ("note",))
        self.assertTrue(self.mend([False, True], is_synchronous=False))
        self.cluster.primary.configure.assert_not_called()

    def test_of_patroni_is_mended_by_patroni(self):
        self.assertFalse(self.mend([False], PatroniCluster))


if __name__ == "__main__":
    unittest.main()
